"""Every fault that others met in public, and that can apply here, stands as a test named by its id."""

import re

import pytest

from tests.conftest import ROOT

CASES = {
    "A": ("01", "03", "04", "06", "07"),  # the game's logic
    "B": ("01", "02", "04", "06"),  # drawing without a display
    "C": ("01", "03", "05", "06", "07"),  # videos
    "D": ("01", "02", "04", "05", "07", "09", "10", "11", "12"),  # the environment under verifiers
    "E": ("02", "03", "05", "06"),  # reports
    "F": ("01", "03", "04", "06", "07"),  # play and the command line
    "G": ("01", "02", "04", "06", "07"),  # the policy server
}
IDS = [f"{kind}{number}" for kind, numbers in CASES.items() for number in numbers]

CANNOT_APPLY: dict[str, str] = {}
"""Ids of which no part can happen here, each with the reason. There is none."""


@pytest.fixture(scope="module")
def tested() -> set[str]:
    """The ids that names of tests begin with."""
    found: set[str] = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        found |= set(re.findall(r"^ *(?:async )?def test_([A-Z]\d\d)_", file.read_text(encoding="utf-8"), re.MULTILINE))
    return found


@pytest.mark.parametrize("case", IDS)
def test_a_public_case_has_a_test_of_its_name(case, tested):
    assert case in tested or case in CANNOT_APPLY


def test_no_test_bears_the_name_of_a_case_that_there_is_not(tested):
    assert tested <= set(IDS)
    assert len(IDS) == 37
