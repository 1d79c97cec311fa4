"""What the words mean: frozen values, standard library only, no I/O."""
