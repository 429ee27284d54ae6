"""The colours of charts, on the page and in exported figures. No colour stands for two things.

Runs have hues; endings and statuses have greens (alive, valid), stones (crashes) and reds (replies that were lost); built-in
players have no hue at all, they are told apart by their dashes.
"""

from __future__ import annotations

from flappybird.world.game import Reason

RUNS = (
    ("#1f6f9f", "#6ab8e4"),
    ("#c2562a", "#ef9468"),
    ("#7d4fa8", "#b994dc"),
    ("#8f6d08", "#d9b545"),
    ("#1b7d78", "#5cc0ba"),
    ("#b0446f", "#e287a9"),
    ("#4a5fc1", "#94a4f0"),
    ("#8a6042", "#c9a083"),
    ("#a2489f", "#da8fd6"),
    ("#56707f", "#9fb4c0"),
)
"""(light, dark) of the first run, the second, …; after the last it begins again, and the run's number tells them apart."""

ENDS = {
    "tick_limit": ("#3d8b4f", "#5aa96c"),
    "pipe": ("#8c8577", "#9b9486"),
    "floor": ("#b5ab97", "#6f6a5f"),
    "ceiling": ("#5f594d", "#c9c2b2"),
    "malformed": ("#c33c2b", "#e2604c"),
    "context": ("#e0806f", "#a9503f"),
    "aborted": ("#d8d2c3", "#4b4842"),
    "error": ("#1c2429", "#f1ede4"),
    "none": ("#ece8dd", "#3a3833"),
    "missing": ("#ece8dd", "#3a3833"),
}
"""(light, dark) by how an episode ended."""
ENDS |= {reason.value: ENDS["pipe"] for reason in Reason if reason.value not in ENDS}  # another crash

STATUSES = {
    "ok": ENDS["tick_limit"],
    "malformed": ENDS["malformed"],
    "truncated": ENDS["context"],
    "empty": ("#eab8ae", "#6d3a30"),
}
"""(light, dark) by what became of a reply."""

CAUSES = {
    "early": ("#d98c1f", "#f0b357"),
    "held": ("#3b78c4", "#7fb0ee"),
    "arithmetic": ("#8b4fb0", "#c195e0"),
    "malformed": ("#a8322b", "#ee7468"),
    "truncated": ("#d9796b", "#b4564a"),
    "empty": ("#efc4bc", "#7a4238"),
    "late": ("#2a8f86", "#63c8be"),
    "hopeless": ("#77716a", "#a39c92"),
}
"""(light, dark) by what lost a game, see `causes.CAUSES`."""

PLAIN = {
    "ink": ("#1c2429", "#e7ecef"),
    "mute": ("#5a6770", "#9aa8b1"),
    "grid": ("#e8e6de", "#26313a"),
    "pipe": ("#5aa84f", "#5aa84f"),
}

DASHES = {"planner": "", "heuristic": "7 3", "random": "2 3", "noop": "9 3 2 3"}
"""How the lines of the built-in players are broken."""


def look(run: int) -> str:
    """Return the name of the colour of run `run`.

    >>> look(0), look(12)
    ('run0', 'run2')
    """
    return f"run{run % len(RUNS)}"


TOKENS: dict[str, tuple[str, str]] = {
    **{look(index): pair for index, pair in enumerate(RUNS)},
    **{f"end-{name}": pair for name, pair in ENDS.items()},
    **{f"status-{name}": pair for name, pair in STATUSES.items()},
    **{f"cause-{name}": pair for name, pair in CAUSES.items()},
    **PLAIN,
}
"""Every colour of a chart by name: (light, dark)."""
