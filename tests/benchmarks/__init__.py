"""Speed, printed beside a peer's in the same run, never asserted: `python -m tests.benchmarks [NAME …]`.

Each module here has a `main()` that prints its figures; peers are installed into an environment that is thrown away.
"""
