"""Honest variations of the reference solution: a verifier that turns one down is too narrow."""
