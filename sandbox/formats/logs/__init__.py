"""What test logs say: a parser for each kind of output, and the table of who prints which."""
