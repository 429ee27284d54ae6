"""What was written, as a real browser shows it."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from render.clip import Clip, Timing
from render.frames import Track
from render.moment import Overlay
from render.scene import Frame
from tests.browser import Browser, needs_a_browser
from tests.samples import flown
from videos.writer import FPS, write

pytestmark = needs_a_browser

SIZE = (320, 240)

GIF = """
const [data, wanted, done] = arguments;
(async () => {
    const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
    const decoder = new ImageDecoder({type: "image/gif", data: bytes});
    await decoder.tracks.ready;
    const pictures = [], delays = [];
    for (let index = 0; index < decoder.tracks.selectedTrack.frameCount; index++) {
        const {image} = await decoder.decode({frameIndex: index});
        delays.push(image.duration);
        if (wanted.includes(index)) {
            const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight);
            canvas.getContext("2d").drawImage(image, 0, 0);
            pictures.push(Array.from(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data));
        }
        image.close();
    }
    return {delays, pictures, repeats: decoder.tracks.selectedTrack.repetitionCount === Infinity};
})().then(done, error => done(String(error)));
"""

MP4 = """
const [data, seconds, done] = arguments;
const video = document.createElement("video");
video.muted = true;
video.src = "data:video/mp4;base64," + data;
video.onerror = () => done(video.error.message);
document.body.append(video);
video.onloadeddata = () => {
    video.requestVideoFrameCallback(shown);
    video.currentTime = seconds;
};
const shown = (now, {mediaTime}) => {
    if (mediaTime < seconds - 0.05) {  // still the first picture
        video.requestVideoFrameCallback(shown);
        return;
    }
    const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
    canvas.getContext("2d").drawImage(video, 0, 0);
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    done({duration: video.duration, pixels: Array.from(pixels)});
};
"""


def clip(start: int, suffix: str, size: tuple[int, int] = SIZE) -> Clip:
    timing = Timing(FPS[suffix], start=start, stop=start + 60)
    return Clip([Track(flown("planner", 3, 200))], size, timing, Overlay(thought=False))


def picture(pixels: list[int], size: tuple[int, int]) -> Frame:
    return np.array(pixels, np.uint8).reshape(size[1], size[0], 4)[..., :3]


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    (tmp_path / "page.html").write_text("<!doctype html><title>page</title>")
    browser.get((tmp_path / "page.html").as_uri())
    return browser


@pytest.mark.parametrize("start", [0, 80])
def test_a_browser_shows_the_pictures_of_a_gif_for_as_long_as_it_says(page: Browser, tmp_path: Path, start: int) -> None:
    drawn = clip(start, ".gif")
    write(tmp_path / "x.gif", drawn.frames(), SIZE, drawn.fps, drawn.samples())
    data = base64.b64encode((tmp_path / "x.gif").read_bytes()).decode()
    wanted = [0, 1, 7, 8, 9, 30, 49]
    seen = page.execute_async_script(GIF, data, wanted)
    assert seen["repeats"]
    assert seen["delays"] == [40_000] * 50  # microseconds
    with Image.open(tmp_path / "x.gif") as gif:
        for index, pixels in zip(wanted, seen["pictures"], strict=True):
            gif.seek(index)
            assert np.array_equal(picture(pixels, SIZE), np.asarray(gif.convert("RGB"))), index


@pytest.mark.parametrize("size", [(320, 240), (1280, 720)])
def test_a_browser_plays_an_mp4_in_the_colours_that_were_drawn(page: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    drawn = clip(80, ".mp4", size)
    write(tmp_path / "x.mp4", drawn.frames(), size, drawn.fps)
    data = base64.b64encode((tmp_path / "x.mp4").read_bytes()).decode()
    seen = page.execute_async_script(MP4, data, 30.5 / 30)
    assert seen["duration"] == pytest.approx(2.0, abs=0.01)
    expected = list(drawn.frames())[30].astype(int)
    off = np.abs(expected - picture(seen["pixels"], size))
    assert off.mean() < 3
    assert np.median(off) <= 2
