"""A batch write outside of a stream commits the rows of its ranges once, and refuses what it would lose in silence."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

from spark_sink import DeltaExactlyOnceSink, IcebergExactlyOnceSink, positions
from spark_sink.errors import HoleError, OptionError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.sink.range_write import added, fingerprints, ranges_of_write
from tests.table_kinds import Place

SCHEMA = arrow_schema(headers=False)


class Job(Place):
    """A job that writes rows of ranges into the table `x`."""

    def write(self, begin: int, end: int, rows: Iterable[int] | None = None, **more: str) -> None:
        """Write the rows of one range, all or some of them, as Spark's calls do."""
        sink = {"delta": DeltaExactlyOnceSink, "iceberg": IcebergExactlyOnceSink}[self.format]
        given = {"path": self.address("x").removeprefix("iceberg://"), "kafka.group.id": "g", **self.storage}
        writer = sink({**given, **bounds(begin, end), **more}).writer(from_arrow_schema(SCHEMA), overwrite=False)
        found = [{"topic": "t", "partition": 0, "offset": one, "value": b"v"} for one in rows or range(begin, end)]
        batch = pa.RecordBatch.from_pylist(found, schema=SCHEMA)
        writer.commit([writer.write(iter([batch]))])


def bounds(begin: object, end: object) -> dict[str, str]:
    """Return the options of one range."""
    return {"startingOffsets": json.dumps({"t": {"0": begin}}), "endingOffsets": json.dumps({"t": {"0": end}})}


@pytest.fixture(params=["delta", "iceberg"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    """One job for each format."""
    return Job(tmp_path, request.param)


def test_a_repeated_write_adds_nothing(job: Job) -> None:
    """Schedulers repeat jobs; the next one begins where the table ends."""
    for begin, end in ((0, 5), (0, 5), (5, 8), (5, 8), (8, 9)):
        job.write(begin, end)
    assert job.offsets("x") == list(range(9))
    assert positions(job.address("x"), "g", job.storage) == {("t", 0): 9}


@pytest.mark.parametrize(
    ("end", "rows"),
    [(6, [1, 3, 5]), (6, [0, 1, 4]), (7, [1, 3, 5]), (7, range(7)), (9, [5, 8])],
    ids=["the other half", "the same ends and number", "a longer range", "all of a longer range", "an overlap"],
)
def test_rows_below_the_position_are_refused_unless_the_newest_write_is_repeated(
    job: Job, end: int, rows: Iterable[int]
) -> None:
    """The table may lack them: they would be lost in silence, as the second half after a filter."""
    job.write(0, 6, [0, 2, 4])
    with pytest.raises(
        TableError,
        match=r"from offset 0 to 6 of t/0, and .* rows from offset \d on, .*fixed_offsets",
    ):
        job.write(0, end, rows)
    job.write(0, 6, [4, 0, 2])
    assert job.offsets("x") == [0, 2, 4]


def test_each_table_of_a_write_knows_its_own_part(tmp_path: Path) -> None:
    """One of them has the write already, after a crash between two commits; another one refused it."""
    ranges = {
        "startingOffsets": json.dumps({"a": {"0": 0}, "b": {"0": 0}}),
        "endingOffsets": json.dumps({"a": {"0": 3}, "b": {"0": 3}}),
    }
    options = {"path": str(tmp_path / "{topic}"), "kafka.group.id": "g", **ranges}
    for rows_of_b in ([0, 1], [0, 1, 2]):
        writer = DeltaExactlyOnceSink(options).writer(from_arrow_schema(SCHEMA), overwrite=False)
        found = [{"topic": "a", "partition": 0, "offset": one, "value": b"v"} for one in range(3)]
        found += [{"topic": "b", "partition": 0, "offset": one, "value": b"v"} for one in rows_of_b]
        message = writer.write(iter([pa.RecordBatch.from_pylist(found, schema=SCHEMA)]))
        if rows_of_b == [0, 1]:
            writer.commit([message])
            continue
        with pytest.raises(TableError, match=r"/b: it has come from offset 0 to 3 of b/0"):
            writer.commit([message])
    counts = [DeltaTable(str(tmp_path / name)).to_pyarrow_table().num_rows for name in "ab"]
    assert counts == [3, 2]


def test_a_write_after_a_later_one_is_refused(job: Job) -> None:
    """Nothing in the table shows any more which rows the first one had."""
    job.write(0, 5)
    job.write(5, 8)
    with pytest.raises(TableError, match=r"from offset 0 to 8 of t/0, and this write has rows from offset 0 on"):
        job.write(0, 5)
    assert job.offsets("x") == list(range(8))


def test_ranges_that_overlap_without_rows_go_on(job: Job) -> None:
    """A filter may leave nothing of the part that the table has."""
    job.write(0, 5)
    job.write(3, 9, [6, 8])
    assert job.offsets("x") == [0, 1, 2, 3, 4, 6, 8]


def test_a_range_after_the_position_is_a_hole(job: Job) -> None:
    """The rows between would be missing."""
    job.write(0, 5)
    with pytest.raises(HoleError, match=r"the batch begins at offset 7, but the table's position is 5;"):
        job.write(7, 9)
    assert job.offsets("x") == list(range(5))


def test_rows_from_before_the_groups_first_offset_are_refused(job: Job) -> None:
    """The group's position is past them, though the table never had them."""
    job.write(5, 9)
    for begin, end in ((0, 5), (0, 7), (4, 20)):
        with pytest.raises(TableError, match=r"it has come from offset 5 to 9 of t/0"):
            job.write(begin, end)
    assert job.offsets("x") == list(range(5, 9))


def test_rows_outside_of_the_ranges_are_refused(job: Job) -> None:
    """The read had other offsets than the write."""
    with pytest.raises(TableError, match=r"t/0: rows 3 to 7 are not of this batch, whose range is \[3, 5\)"):
        job.write(3, 5, range(3, 8))


def test_records_of_a_recreated_topic_are_refused(job: Job) -> None:
    """Its offsets mean other records."""
    job.write(0, 3, topicIds=json.dumps({"t": "cluster/first"}))
    with pytest.raises(TableError, match=r"earlier topic of this name, which was deleted and recreated"):
        job.write(0, 5, topicIds=json.dumps({"t": "cluster/second"}))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), min_size=1, max_size=5),
    st.sampled_from(["delta", "iceberg"]),
)
def test_any_sequence_of_writes_leaves_each_offset_once(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, int]], kind: str
) -> None:
    """From the first offset to the position without a hole; a refused write changes nothing."""
    job = Job(tmp_path_factory.mktemp("any"), kind)
    first, at, last = writes[0][0], writes[0][0], None
    for begin, length in writes:
        if begin == at or (begin, length) == last:
            job.write(begin, begin + length)
            at, last = max(at, begin + length), (begin, length)
        else:
            with pytest.raises(TableError):
                job.write(begin, begin + length)
    assert job.offsets("x") == list(range(first, at))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"endingOffsets": '{"t": {"0": 5}}'}, "option 'startingOffsets': nothing; a batch write needs the offset"),
        ({**bounds(0, 5), "endingOffsets": "latest"}, "option 'endingOffsets': latest; a batch write needs"),
        (bounds(0, -1), "option 'endingOffsets': -1 of t/0; .* spark_sink.fixed_offsets"),
        (bounds(-2, 5), "option 'startingOffsets': -2 of t/0"),
        (bounds(7, 5), "t/0: the range ends at 5 and begins at 7"),
        (bounds("x", 5), "option 'startingOffsets': need"),
        ({**bounds(0, 5), "startingOffsets": '{"t": {"1": 0}}'}, "t/0 is in one of them only"),
        ({**bounds(0, 5), "topicIds": "[]"}, "option 'topicIds': need"),
        (bounds(0, 5.5), "option 'endingOffsets': need"),
        ({"startingOffsets": "{}", "endingOffsets": "{}"}, "name no partition"),
    ],
)
def test_bad_ranges_are_one_sentence(options: Mapping[str, str], sentence: str) -> None:
    """It names the option and the way out."""
    with pytest.raises(OptionError, match=sentence):
        ranges_of_write(options)


@pytest.mark.parametrize(
    "options",
    [{}, {"startingOffsets": "earliest"}, {"startingOffsets": "earliest", "checkpointLocation": "c"}],
    ids=str,
)
@pytest.mark.parametrize("sink", [DeltaExactlyOnceSink, IcebergExactlyOnceSink])
def test_a_write_without_ranges_says_the_ways_out(sink: type, options: dict[str, str], tmp_path: Path) -> None:
    """As one that lacks its number in foreachBatch."""
    one = sink({"path": str(tmp_path / "x"), "kafka.group.id": "g", **options})
    with pytest.raises(OptionError, match=r"in foreachBatch set the option 'batchId'.*spark_sink.fixed_offsets"):
        one.writer(from_arrow_schema(SCHEMA), overwrite=False)


@pytest.mark.parametrize("sink", [DeltaExactlyOnceSink, IcebergExactlyOnceSink])
def test_ranges_with_a_checkpoint_are_refused(sink: type, tmp_path: Path) -> None:
    """It is a map of options for a stream, or a write in foreachBatch that lacks its number."""
    one = sink({"path": str(tmp_path / "x"), "kafka.group.id": "g", **bounds(0, 5), "checkpointLocation": "c"})
    with pytest.raises(OptionError, match=r"leave out 'checkpointLocation', or, in foreachBatch, set the option"):
        one.writer(from_arrow_schema(SCHEMA), overwrite=False)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 2**62)), unique=True), st.data())
def test_a_fingerprint_stands_for_the_records_in_any_order_and_any_batches(
    records: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    """Tasks read them in other parts when a job is repeated; another set of records has another one."""

    def of(rows: list[tuple[str, int, int]]) -> dict[str, int]:
        columns = ("topic", "partition", "offset")
        return fingerprints(
            pa.RecordBatch.from_pylist(
                [dict(zip(columns, one, strict=True)) for one in rows],
                schema=pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]),
            )
        )

    mixed = data.draw(st.permutations(records))
    cut = data.draw(st.integers(0, len(mixed)))
    assert added([of(mixed[:cut]), of(mixed[cut:])]) == of(records)
    if records:
        assert of(records[1:]) != of(records)
