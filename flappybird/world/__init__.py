"""The rules of the game: exact physics on whole numbers. Knows no text protocol and no file."""
