"""Demonstrations: games of a policy, as words that a model learns from. `flappybird.sft` is the door to them."""
