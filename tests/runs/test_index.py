import json
import os
import shutil

import pytest

from flappybird.errors import EpisodeError
from flappybird.runs import load_run
from flappybird.runs.entries import index_range
from flappybird.runs.index import RANGE, Index
from tests.runs.test_load import METADATA, saved_row


@pytest.fixture(scope="module")
def lines():
    return [json.dumps(saved_row(seed, "random")) + "\n" for seed in range(6)]


@pytest.fixture
def folder(tmp_path, lines):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metadata.json").write_text(json.dumps(METADATA))
    (folder / "results.jsonl").write_text("".join(lines[:3]))
    return folder


@pytest.fixture
def index(tmp_path):
    return Index(tmp_path / "index.sqlite")


def read(index, folder, **options):
    return list(index.update(folder, **options))


def append(folder, text):
    with open(folder / "results.jsonl", "a") as file:
        file.write(text)


def test_a_row_says_what_its_episode_says(index, folder):
    read(index, folder)
    for entry, row in zip(index.entries(folder), load_run(folder).rows, strict=True):
        ending = row.episode.outcome
        assert (entry.seed, entry.reward, entry.pipes, entry.ticks) == (
            row.episode.seed,
            ending.reward,
            ending.pipes_passed,
            ending.ticks,
        )
        assert (entry.ended, entry.level, entry.verified, entry.turns) == (
            ending.reason.value,
            "card",
            True,
            len(row.episode.turns),
        )


def test_offset_and_length_give_the_line_back(index, folder, lines):
    read(index, folder)
    data = (folder / "results.jsonl").read_bytes()
    assert [data[entry.offset : entry.offset + entry.length].decode() for entry in index.entries(folder)] == lines[:3]


def test_a_file_that_grew_is_read_from_where_it_was_left(index, folder, lines, monkeypatch):
    read(index, folder)
    seen = []
    monkeypatch.setattr("flappybird.runs.index.index_range", lambda task: seen.append(task) or index_range(task))
    read(index, folder)
    assert seen == []
    append(folder, lines[3])
    read(index, folder)
    assert [task[1] for task in seen] == [sum(map(len, lines[:3]))]
    assert [entry.seed for entry in index.entries(folder)] == [0, 1, 2, 3]


def test_a_last_line_that_is_half_written_is_waited_for(index, folder, lines):
    append(folder, lines[3][:1000])
    read(index, folder)
    assert index.numbers(folder)["n"] == 3
    append(folder, lines[3][1000:-1])
    read(index, folder)
    append(folder, "\n" + lines[4])
    read(index, folder)
    assert [entry.seed for entry in index.entries(folder)] == [0, 1, 2, 3, 4]
    assert index.numbers(folder)["damaged"] == 0


@pytest.mark.parametrize("kept", [[5], [5, 4, 3], [5, 4, 3, 2, 1]], ids=["shorter", "as long", "longer"])
def test_a_file_that_was_replaced_is_read_anew(index, folder, lines, kept):
    read(index, folder)
    (folder / "results.jsonl").write_text("".join(lines[number] for number in kept))
    read(index, folder)
    assert [entry.seed for entry in index.entries(folder)] == kept


def test_a_damaged_line_is_counted_and_the_others_stay(index, folder, lines):
    append(folder, "{broken\n" + lines[3])
    read(index, folder)
    assert index.numbers(folder)["n"] == 4
    assert index.numbers(folder)["damaged"] == 1


def test_ranges_hold_each_line_once_wherever_they_are_cut(folder, lines):
    whole = index_range((str(folder), 0, 1 << 40, None)).entries
    size, first = sum(map(len, lines[:3])), len(lines[0])
    for cut in (1, first - 1, first, first + 1, size - 1):
        parts = [index_range((str(folder), *ends, None)).entries for ends in ((0, cut), (cut, size))]
        assert [*parts[0], *parts[1]] == whole


def test_two_processes_give_the_same_rows(tmp_path, folder, lines, monkeypatch):
    monkeypatch.setattr("flappybird.runs.index.RANGE", RANGE // 100)
    indices = [Index(tmp_path / f"{jobs}.sqlite") for jobs in (1, 2)]
    for jobs, index in enumerate(indices, 1):
        read(index, folder, jobs=jobs)
    assert indices[0].entries(folder) == indices[1].entries(folder) != []


def test_rows_are_sorted_filtered_and_paged(index, folder, lines):
    append(folder, "".join(lines[3:]))
    read(index, folder)
    rewards = [entry.reward for entry in index.entries(folder, sort="reward", down=True)]
    assert rewards == sorted(rewards, reverse=True)
    assert [entry.seed for entry in index.entries(folder, {"seed": (2, None)}, sort="seed", start=1, most=2)] == [3, 4]
    assert index.count(folder, {"level": "card", "seed": (None, 1)}) == 2
    with pytest.raises(EpisodeError, match="'; drop' is no column; there are offset, "):
        index.entries(folder, sort="; drop")


def test_a_run_that_has_gone_is_an_error_and_what_was_known_stays(index, folder):
    read(index, folder)
    shutil.rmtree(folder)
    with pytest.raises(EpisodeError, match="no such file or folder"):
        read(index, folder)
    assert index.numbers(folder)["n"] == 3


def test_rows_of_another_environment_say_so(index, folder):
    (folder / "results.jsonl").write_text(json.dumps({"example_id": 0, "prompt": [], "completion": [], "reward": 1.0}) + "\n")
    read(index, folder)
    (entry,) = index.entries(folder)
    assert entry.verified is None
    assert entry.error


def test_a_folder_of_episode_files_is_a_run_too(index, tmp_path, folder):
    from flappybird.episodes.episode import save

    files = tmp_path / "files"
    files.mkdir()
    for row in load_run(folder).rows:
        save(row.episode, files / f"episode-{row.index}.json")
    read(index, files)
    assert [entry.seed for entry in index.entries(files)] == [0, 1, 2]
    os.remove(files / "episode-1.json")
    read(index, files)
    assert [entry.seed for entry in index.entries(files)] == [0, 2]


def test_an_index_that_is_damaged_is_made_anew(tmp_path, folder):
    file = tmp_path / "index.sqlite"
    file.write_text("no database" * 1000)
    index = Index(file)
    read(index, folder)
    assert index.numbers(folder)["n"] == 3
