"""An episode's player in a notebook."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from flappybird.episodes.episode import Episode
from flappybird.report.data import gather
from flappybird.report.page import build
from flappybird.runs import Row, Run
from flappybird.world.game import Reason

HEIGHT = 640
"""Of the frame, in pixels."""


def player(episode: Episode) -> str:
    """Return a frame with the player of `episode`, which holds all it shows and may do nothing but run its own script."""
    error = episode.outcome.error or "error" if episode.outcome.reason is Reason.ERROR else None
    run = Run(Path("episode"), "episodes", episode.player.name, [Row(0, episode, error=error, example=episode.seed)], asked=1)
    frame = Markup(
        '<iframe srcdoc="{}" width="100%" height="{}" sandbox="allow-scripts allow-downloads" '
        'title="Flappy Bird, seed {}" style="border:0"></iframe>'
    )
    return str(frame.format(build(gather([run]), Path(), embed=True), HEIGHT, episode.seed))
