"""`python -m tests.benchmarks [NAME …]` runs the benchmarks NAME, or all of them."""

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = sorted(file.stem for file in FOLDER.glob("*.py") if not file.stem.startswith("_"))


def main(names: list[str]) -> int:
    """Run the benchmarks and return the exit code."""
    for name in names:
        if name not in NAMES:
            print(f"{name} is no benchmark; there are: {', '.join(NAMES)}", file=sys.stderr)
            return 2
    for name in names or NAMES:
        print(f"# {name}\n", flush=True)
        import_module(f"tests.benchmarks.{name}").main()
        print(flush=True)
    return 0


sys.exit(main(sys.argv[1:]))
