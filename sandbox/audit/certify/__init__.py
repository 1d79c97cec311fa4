"""Does the verdict stand still when everything around it moves? Pure, but for `execute`."""
