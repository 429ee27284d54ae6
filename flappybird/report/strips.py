"""Flight strips: the last moments of a flight as a small picture."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from flappybird.report.data import Record

TICKS = 40
"""The most ticks that a strip shows."""
WIDTH, HEIGHT = 168, 64


def strip(record: Record) -> Markup:
    """Return the end of a flight: its path, the pipes in its way, the point of no return and where it ended."""
    played, analysis = record.played, record.analysis
    assert played is not None
    assert analysis is not None
    physics, course, states = played.course.physics, played.course, played.states
    last = len(states) - 1
    lost = record.cause.tick if record.cause else last
    first = max(0, min(last - TICKS, lost - 6), last - 2 * TICKS)
    wide = max(last - first, 1)

    def x(tick: float) -> float:
        return round(6 + (WIDTH - 16) * (tick - first) / wide, 1)

    def y(units: float) -> float:
        return round(HEIGHT / 2 - (HEIGHT - 8) / 2 * units / (physics.high + physics.radius), 1)

    def pipes() -> Iterator[str]:
        for number in range(course.touching(first).start, course.touching(last).stop):
            gap = course.gap(number)
            left = max(x(physics.spawn_tick(number) + physics.enter_age), 0.0)
            right = min(x(physics.spawn_tick(number) + physics.leave_age), float(WIDTH))
            top, bottom = y(gap.y + gap.height / 2), y(gap.y - gap.height / 2)
            if right > left:
                yield f"M{left} 0h{right - left:.1f}V{top}h{left - right:.1f}z"
                yield f"M{left} {HEIGHT}h{right - left:.1f}V{bottom}h{left - right:.1f}z"

    path = "L".join(f"{x(state.tick)} {min(max(y(state.y), 0), HEIGHT)}" for state in states[first:])
    doomed = "L".join(f"{x(state.tick)} {min(max(y(state.y), 0), HEIGHT)}" for state in states[max(lost, first) :])
    taps = "".join(
        f"M{x(tick)} {y(states[tick].y)}v5" for tick in range(first, last) if states[tick + 1].velocity == physics.jump
    )
    end = f"M{x(last) - 3} {min(max(y(states[-1].y), 3), HEIGHT - 3) - 3}l6 6m-6 0l6 -6"
    return Markup(
        '<svg class="strip" viewBox="0 0 {} {}" aria-hidden="true"><path class="strip-pipes" d="{}"/>'
        '<path class="strip-taps" d="{}"/><path class="strip-path" d="M{}"/><path class="strip-lost" d="M{}"/>'
        '<circle class="strip-point" cx="{}" cy="{}" r="3"/><path class="strip-end" d="{}"/></svg>'
    ).format(WIDTH, HEIGHT, "".join(pipes()), taps, path, doomed, x(lost), y(states[min(lost, last)].y), end)
