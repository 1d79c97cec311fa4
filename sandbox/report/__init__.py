"""Tables and numbers for people."""
