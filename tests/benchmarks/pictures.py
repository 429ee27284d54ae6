"""Drawing and writing, ours beside its peers, in one run: `uv run python tests/benchmarks/pictures.py`.

Peers: `render()` of flappy-bird-gymnasium 0.4.0, installed into an environment of its own that is thrown away, and what one
writes with imageio without further thought (`surfarray.array3d`, `imageio.v2.get_writer` with its defaults), fed with our own
scene. Nothing is asserted: machines differ, ratios of one run are what to look at. Seconds are CPU seconds of the process and
its children.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flappybird.players.games import fly
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from render.clip import Clip, Timing
from render.frames import Track
from render.scene import Overlay
from render.sdl import pygame
from videos.writer import FPS, write

PEER = "flappy-bird-gymnasium==0.4.0"
PEER_CODE = """
import time, warnings; warnings.simplefilter("ignore")
import os; os.environ["SDL_VIDEODRIVER"] = "dummy"; os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
import gymnasium, flappy_bird_gymnasium
env = gymnasium.make("FlappyBird-v0", render_mode="rgb_array", use_lidar=False, disable_env_checker=True).unwrapped
env.reset(seed=1)
for _ in range(20): frame = env.render()
began, count = time.process_time(), 0
while time.process_time() - began < 2.0:
    if env.step(count % 18 == 0)[2]: env.reset(seed=1)
    spent = time.process_time(); frame = env.render(); count += 1
began, count = time.process_time(), 0
for _ in range(200): frame = env.render()
print(200 / (time.process_time() - began), *frame.shape, frame.flags.c_contiguous)
"""
RUNS = 3
HUD = Overlay(thought=False)
PLAIN = (576, 480)


def main() -> None:
    """Measure everything and print it."""
    track = Track(fly("planner", FlappyConfig(), 3, Rules()))
    print(f"An episode of {track.last} ticks; median of {RUNS} runs, CPU seconds.\n")
    drawing(track)
    with tempfile.TemporaryDirectory() as folder:
        writing(track, Path(folder), "MP4", ".mp4", HUD)
        writing(track, Path(folder), "MP4, a new thought in every tick", ".mp4", Overlay())
        writing(track, Path(folder), f"GIF, {FPS['.gif']:g} pictures per second (the default)", ".gif", HUD, FPS[".gif"])
        writing(track, Path(folder), "GIF, a picture for each tick", ".gif", HUD)
        memory(Path(folder))


def spent(work: Callable[[], object]) -> float:
    """CPU seconds of `work`, children included."""
    before, began = os.times(), time.process_time()
    work()
    after = os.times()
    return time.process_time() - began + sum(after[2:4]) - sum(before[2:4])


def drawing(track: Track) -> None:
    """Pictures per CPU second."""
    ours = {}
    for size in ((288, 512), PLAIN):
        scene, moments = track.scene(size, HUD), [track.moment(tick) for tick in range(1, track.last + 1)]
        seconds = []
        for _ in range(5 * RUNS):
            began = time.process_time()
            for moment in moments:
                scene.draw(moment)
            seconds.append(time.process_time() - began)
        ours[size] = len(moments) / statistics.median(seconds)
    print(f"drawing, 576x480 with HUD and tilt          {ours[PLAIN]:8.0f} pictures/s")
    peer = peer_rate()
    if peer is not None:
        print(f"drawing, 288x512                            {ours[288, 512]:8.0f} pictures/s")
        print(f"{PEER} render(), 288x512 {peer:8.0f} pictures/s: ours is {ours[288, 512] / peer:.0f}x")


def peer_rate() -> float | None:
    """What flappy-bird-gymnasium reaches, in a throw-away environment; None where it cannot be installed."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            subprocess.run(["uv", "venv", "--python", sys.executable, folder], check=True, **quiet)  # type: ignore[call-overload]
            subprocess.run(["uv", "pip", "install", "--python", str(python), PEER], check=True, **quiet)  # type: ignore[call-overload]
            done = subprocess.run([str(python), "-c", PEER_CODE], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{PEER} could not be measured: {error}")
            return None
        rate, height, width, depth, contiguous = done.stdout.split()
        print(f"(the peer's picture: {height}x{width}x{depth}, contiguous: {contiguous})")
        return float(rate)


def writing(track: Track, folder: Path, name: str, suffix: str, overlay: Overlay, fps: float = 30) -> None:
    """A whole episode to a file, ours beside imageio without further thought."""
    import imageio.v2

    naive_path, our_path = folder / f"naive{suffix}", folder / f"ours{suffix}"

    def naive() -> None:
        scene = track.scene(PLAIN, overlay)
        with imageio.v2.get_writer(naive_path, fps=30) as writer:
            for tick in range(1, track.last + 1):
                scene.paint(track.moment(tick))
                writer.append_data(np.ascontiguousarray(pygame.surfarray.array3d(scene.canvas).swapaxes(0, 1)))

    def ours() -> None:
        clip = Clip([track], PLAIN, Timing(fps), overlay)
        write(our_path, clip.frames(), PLAIN, clip.fps, clip.samples() if suffix == ".gif" else ())

    times: dict[str, list[float]] = {"naive": [], "ours": []}
    walls: dict[str, list[float]] = {"naive": [], "ours": []}
    for _ in range(RUNS):
        for which, work in (("naive", naive), ("ours", ours)):
            began = time.perf_counter()
            times[which].append(spent(work))
            walls[which].append(time.perf_counter() - began)
    cpu = {which: statistics.median(seconds) for which, seconds in times.items()}
    wall = {which: statistics.median(seconds) for which, seconds in walls.items()}
    size = {"naive": naive_path.stat().st_size, "ours": our_path.stat().st_size}
    print(f"\n{name}")
    for which in ("naive", "ours"):
        print(f"  {which:6} {cpu[which]:6.2f} s CPU {wall[which]:6.2f} s wall {size[which] / 1000:7.0f} KB")
    print(
        f"  ours is {cpu['naive'] / cpu['ours']:.1f}x in CPU, {wall['naive'] / wall['ours']:.1f}x in wall time, "
        f"{size['ours'] / size['naive']:.2f}x in size"
    )


def memory(folder: Path) -> None:
    """Peak memory while writing, of a short and of a long episode."""
    code = (
        "import sys; from pathlib import Path\n"
        "from flappybird.world.config import FlappyConfig; from flappybird.protocol.rules import Rules\n"
        "from flappybird.players.games import fly\n"
        "from render.clip import Clip; from render.frames import Track; from videos.writer import write\n"
        "clip = Clip([Track(fly('planner', FlappyConfig(), 3, Rules(max_turns=int(sys.argv[1]))))])\n"
        "def peak(): return next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "clip.samples(); before = peak()\n"
        "written = write(Path(sys.argv[2]), clip.frames(), clip.size, clip.fps)\n"
        "print(written.frames, before, peak())\n"
    )
    print()
    for suffix in (".mp4", ".gif"):
        for ticks in (300, 3_000):
            command = [sys.executable, "-c", code, str(ticks), str(folder / f"memory{suffix}")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            frames, before, after = map(int, done.stdout.split())
            print(f"memory, {frames:4} pictures to {suffix}: {(after - before) / 1000:5.0f} MB above {before / 1000:.0f} MB")


if __name__ == "__main__":
    main()
