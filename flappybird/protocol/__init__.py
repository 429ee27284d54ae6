"""What a model reads, how its reply is read, how replies and ticks meet."""
