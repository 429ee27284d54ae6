"""`python -m flappybird …` is `flappybird …`."""

import sys

from flappybird.cli import main

sys.exit(main())
