"""When a task has read everything that there is."""

from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.ranges.range_completion import TaskProgress

A, B = TopicPartition("a", 0), TopicPartition("b", 3)


def test_a_range_ends_at_its_last_offset_or_behind_it() -> None:
    """Only a later record, or the end of the log, shows a gap at the end."""
    progress = TaskProgress([Range("a", 0, 5, 10), Range("b", 3, 0, 4), Range("c", 0, 7, 7)])
    assert progress.offsets == 9
    assert not progress.advance(A, 6)
    assert progress.offsets == 8
    assert progress.advance(A, 12)
    assert (progress.bounds(A), progress.bounds(B)) == ((0, 0), (0, 4))
    assert progress.advance(B, 4)
    assert not progress


def test_what_is_not_being_read_is_passed_over() -> None:
    """A log end that was already reported, or of another batch's partition, changes nothing."""
    progress = TaskProgress([Range("a", 0, 5, 10)])
    assert not progress.advance(B, 100)
    assert not progress.advance(A, 2)
    assert progress.left == [Range("a", 0, 5, 10)]
    assert A in progress
    assert B not in progress
