"""Bytes to typed values and back; every file format has its one home here."""
