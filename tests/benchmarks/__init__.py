"""Speed, shown and never asserted: `python -m tests.benchmarks` prints ours beside the peers', measured in one run."""
