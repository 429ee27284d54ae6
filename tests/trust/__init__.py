"""Whatever a model, a server or a file does: no score that is not true, no finished episode lost."""
