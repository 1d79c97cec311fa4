"""Which hidden tests a plain script can take, and what it must observe meanwhile."""
