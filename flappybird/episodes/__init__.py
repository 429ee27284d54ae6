"""One game played by replies: what is kept of it, and what it is worth."""
