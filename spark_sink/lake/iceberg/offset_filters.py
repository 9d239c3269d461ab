"""Filters by offset, which leave out whole files by their bounds; this module imports pyiceberg, which loads slowly."""

from collections.abc import Mapping
from typing import Any

from pyiceberg import expressions

from spark_sink.ranges.batch_offset import TopicPartition

# mypy takes the fields of these models for the arguments of their constructors.
_made: Any = expressions
_MOST = 256  # partitions in a filter: pyiceberg compares the bounds of each file with all of them


def not_below(ends: Mapping[TopicPartition, int]) -> expressions.BooleanExpression:
    """Return a filter of all rows except those below an offset of their partition; at least one offset."""
    found: expressions.BooleanExpression = _made.Not(
        _any_of([_of(key, _made.LessThan("offset", at)) for key, at in sorted(ends.items())])
    )
    return found


def from_offsets(floors: Mapping[TopicPartition, int]) -> expressions.BooleanExpression:
    """Return a filter of the rows at or above an offset of their partition, at least one, and maybe of some below."""
    if len(floors) > _MOST:
        lowest: expressions.BooleanExpression = _made.GreaterThanOrEqual("offset", min(floors.values()))
        return lowest
    return _any_of([_of(key, _made.GreaterThanOrEqual("offset", at)) for key, at in sorted(floors.items())])


def _of(key: TopicPartition, offsets: expressions.BooleanExpression) -> expressions.BooleanExpression:
    found: expressions.BooleanExpression = _made.And(
        _made.EqualTo("topic", key.topic), _made.EqualTo("partition", key.partition), offsets
    )
    return found


def _any_of(found: list[expressions.BooleanExpression]) -> expressions.BooleanExpression:
    # Balanced: a chain of hundreds overflows the stack.
    joined: expressions.BooleanExpression = _made.Or(*found) if len(found) > 1 else found[0]
    return joined
