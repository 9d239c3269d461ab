"""What topics are called in their tables."""

from pathlib import Path

import pytest

from assignors.fleet import FleetTopic
from spark_sink import positions
from spark_sink._offsets import Range, TopicPartition
from spark_sink.fleet._writer import Rows, TableWriter


@pytest.mark.parametrize("address", ["t", "{topic}"], ids=["one table", "a table each"])
@pytest.mark.parametrize("identity", ["a/b+c", "///"])
def test_the_position_of_a_topic_made_anew_is_found_whatever_its_id(
    tmp_path: Path, address: str, identity: str
) -> None:
    """Every third id has a slash, as librdkafka writes them: part of a position's name or of a path it cut them off."""
    writer = TableWriter(str(tmp_path / address), "g", "a")
    first, anew = FleetTopic("c", "1", "x", "s"), FleetTopic("c", identity, "x", "s")
    assert writer.label([first]) == {first: "x"}
    label = writer.label([anew])[anew]
    assert label == f"x@{anew.printed_id}"
    rows = Rows()
    for offset in range(3):
        for column, value in zip(rows.columns.values(), (label, 0, offset, None, None, b"v"), strict=True):
            column.append(value)
    assert not writer.commit(writer.land(rows, {label}), [Range(label, 0, 0, 3)])
    assert writer.positions({label}) == {TopicPartition(label, 0): 3}
    assert positions(str(tmp_path / address), "g") == {TopicPartition(label, 0): 3}
    assert writer.commit(writer.land(rows, {label}), [Range(label, 0, 0, 3)]) == {}
