"""Numbers and tables for people."""
