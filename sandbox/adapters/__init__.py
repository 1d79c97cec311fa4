"""Other tools' data in, files for other tools out. Only here and in formats/ are their words used."""
