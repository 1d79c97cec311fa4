"""What an agent's box must not hold: the solution, the hidden tests, the future."""
