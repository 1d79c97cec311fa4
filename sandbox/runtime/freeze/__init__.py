"""What stands still in a box: its clock, and what else would drift."""
