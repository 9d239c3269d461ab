"""The labels of events never lie on each other."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_sink.demo.report.marks import GAP_PX, Mark, place

RIGHT_EDGE = 1000.0
marks = st.lists(
    st.builds(Mark, x=st.floats(0, RIGHT_EDGE).map(lambda x: round(x, 1)), width=st.floats(20, 150)), max_size=9
).map(lambda found: sorted(found, key=lambda mark: mark.x))


@given(marks)
def test_no_two_labels_of_a_lane_overlap(found: list[Mark]) -> None:
    """Two labels in one lane would be unreadable, whatever the events are."""
    placed = place(found, RIGHT_EDGE)
    extents = []
    for mark, where in zip(found, placed, strict=True):
        begin = mark.x - GAP_PX - mark.width if where.leftwards else mark.x + GAP_PX
        extents.append((where.lane, begin, begin + mark.width))
    extents.sort()
    for (lane, _, end), (next_lane, begin, _) in pairwise(extents):
        assert lane != next_lane or end <= begin


@given(marks)
def test_no_line_runs_through_a_label(found: list[Mark]) -> None:
    """A line ends at the top of its own label, so a label that spans it has to be higher."""
    placed = place(found, RIGHT_EDGE)
    for mark, where in zip(found, placed, strict=True):
        begin = mark.x - GAP_PX - mark.width if where.leftwards else mark.x + GAP_PX
        crossed = [p.lane for m, p in zip(found, placed, strict=True) if begin < m.x < begin + mark.width]
        assert where.lane > max(crossed, default=-1)


@given(marks)
def test_every_label_stays_inside_on_the_right(found: list[Mark]) -> None:
    """A label that would leave the picture is on the left of its line."""
    for mark, where in zip(found, place(found, RIGHT_EDGE), strict=True):
        assert where.leftwards or mark.x + GAP_PX + mark.width <= RIGHT_EDGE


def test_one_event_takes_one_lane() -> None:
    """Lanes cost height: without a conflict there is one."""
    assert [p.lane for p in place([Mark(10, 50), Mark(200, 50), Mark(995, 50)], RIGHT_EDGE)] == [0, 0, 0]
