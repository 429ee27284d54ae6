"""The machine: whole files, Ctrl-C, exit codes. Knows nothing of the game."""
