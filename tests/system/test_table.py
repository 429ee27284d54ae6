from hypothesis import given
from hypothesis import strategies as st

from flappybird.system.table import table

CELL = st.text("ab ", min_size=1, max_size=6).map(lambda text: text.replace(" ", "x"))


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1), st.sets(st.integers(0, 2)))
def test_every_cell_stands_at_the_edge_of_its_column(rows, words):
    head, *lines = rows
    printed = table(head, lines, words).split("\n")
    assert [tuple(line.split()) for line in printed] == rows
    left = 0
    for column in range(3):
        width = max(len(row[column]) for row in rows)
        for row, line in zip(rows, printed, strict=True):
            found = line[left : left + width].ljust(width)
            assert found == (row[column].ljust(width) if column in words else row[column].rjust(width))
        left += width + 2


def test_a_table_of_no_rows_is_its_head():
    assert table(("policy", "pipes"), []) == "policy  pipes"
