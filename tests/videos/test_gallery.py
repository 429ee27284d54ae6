from pathlib import Path

import pytest
from PIL import Image

import videos.gallery
from flappybird.world.game import Reason
from videos.gallery import LARGEST, SHOTS, make

SHOWN = Path(videos.gallery.__file__).parent


@pytest.mark.parametrize("name", SHOTS)
def test_a_clip_of_the_gallery_is_what_the_script_makes(name: str, tmp_path: Path) -> None:
    written = make(name, tmp_path)
    assert (tmp_path / name).stat().st_size <= LARGEST
    assert (SHOWN / name).stat().st_size <= LARGEST
    with Image.open(tmp_path / name) as made, Image.open(SHOWN / name) as shown:
        assert made.size == shown.size == written.size
        assert made.n_frames == shown.n_frames
        made.seek(made.n_frames - 1)
        shown.seek(shown.n_frames - 1)
        assert made.convert("RGB").tobytes() == shown.convert("RGB").tobytes()


def test_the_gallery_shows_what_it_says() -> None:
    from tests.samples import flown

    assert flown("planner", SHOTS["passes.gif"].seed).outcome.pipes_passed >= 5
    assert flown("heuristic", SHOTS["crash.gif"].seed).outcome.reason is Reason.PIPE
    assert SHOTS["race.gif"].ghost == "planner"
