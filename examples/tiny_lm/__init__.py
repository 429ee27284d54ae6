"""A language model learns to fly, from nothing: see `docs/tiny_lm.md`."""
