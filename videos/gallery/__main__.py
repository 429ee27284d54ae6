"""`python -m videos.gallery [DIR]`: make the gallery again, beside this file or in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from flappybird.system.command import guarded


def main() -> int:
    """Make every clip and say what was made."""
    from videos.gallery import SHOTS, make

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name in SHOTS:
        print(make(name, folder))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, alone=True))
