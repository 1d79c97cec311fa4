"""What a box may reach: nothing, what was recorded before, or (said openly) the world."""
