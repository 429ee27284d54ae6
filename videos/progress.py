"""The film of a model that learns to fly: one seed through several runs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from flappybird.errors import FlappyError
from flappybird.runs import load_run
from flappybird.runs.training import is_training, training_steps
from render.clip import Clip, Timing
from render.frames import Track
from render.layout import DEFAULT_SIZE, Size
from render.moment import Overlay
from render.scene import Frame
from videos.writer import Written, check_target, write


class Film(NamedTuple):
    """Clips of the same course, in the order in which they are shown."""

    clips: Sequence[Clip]

    def frames(self) -> Iterator[Frame]:
        """Yield the pictures of all clips, one after the other: (height, width, 3), uint8."""
        for clip in self.clips:
            yield from clip.frames()

    def samples(self) -> list[Frame]:
        """Return a few pictures from all over the film."""
        chosen = self.clips[:: max(len(self.clips) // 4, 1)]
        return [picture for clip in chosen for picture in clip.samples()[::3]]


def film(
    runs: Sequence[str], seed: int, size: Size = DEFAULT_SIZE, timing: Timing = Timing(), overlay: Overlay = Overlay()
) -> Film:
    """Return the film of `seed` through `runs`, each titled by its name, such as `step_100`.

    Of several rollouts of the seed in a run, the first is shown. One trainer's output folder stands for its steps: those that
    were evaluated, or where none was, those that were trained on.

    Raises:
        FlappyError: a run has no rollout of the seed that can be replayed.
    """
    clips = []
    named: list[tuple[str | Path, str]] = [(where, Path(where).resolve().stem) for where in runs]
    if len(runs) == 1 and is_training(runs[0]):
        steps = training_steps(runs)
        named = [(step.fit, step.name) for step in steps if step.eval or not any(one.eval for one in steps)]
    for where, name in named:
        rows = [row.episode for row in load_run(where).rows if row.episode is not None and row.episode.seed == seed]
        if not rows:
            raise FlappyError(f"{where}: no episode of seed {seed}")
        assert rows[0] is not None
        track = Track(rows[0], f"{name}: {rows[0].player.name}")
        clips.append(Clip([track], size, timing, overlay))
    return Film(clips)


def write_film(path: Path, shown: Film, quality: str = "fast") -> Written:
    """Write a film to `path`, an MP4 or a GIF."""
    kind = check_target(path)
    first = shown.clips[0]
    return write(path, shown.frames(), first.size, first.fps, shown.samples() if kind == ".gif" else (), quality)
