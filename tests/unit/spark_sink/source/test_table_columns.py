"""Agents of one group decode with the columns that their table keeps, whenever they started."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql.pandas.types import from_arrow_schema

from spark_sink.errors import OptionError
from spark_sink.formats import infer_columns
from spark_sink.formats.unknown_policy import COLUMN
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink import delta_sink
from spark_sink.sink.delta_sink import DirectWriter
from spark_sink.sink.direct_landing import table_schema
from spark_sink.sink.rows_by_table import landed_schema
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source import source_decoder
from spark_sink.source.source_decoder import make_decoder
from spark_sink.source.stream_reader import KafkaGroupReader, TaskRanges
from spark_sink.source.table_columns import kept_columns
from tests.unit.spark_sink.formats.examples import raw

OLD = b'{"id": 1}'
NEW = b'{"id": 2, "coupon": "x"}'


class Log:
    """A topic with one partition for each agent, and the records that Kafka would give."""

    def __init__(self) -> None:
        self.records: dict[TopicPartition, list[bytes]] = {}

    def add(self, topic: str, partition: int, *values: bytes) -> Range:
        """Append records; the range that they have."""
        records = self.records.setdefault(TopicPartition(topic, partition), [])
        begin = len(records)
        records += values
        return Range(topic, partition, begin, len(records))

    def fetch(self, ranges: Sequence[Range], *_: object) -> Iterator[pa.RecordBatch]:
        """Read ranges, as the tasks do."""
        for one in ranges:
            n = one.end - one.begin
            batch = raw(self.records[one.key][one.begin : one.end])
            batch = batch.set_column(0, "topic", pa.array([one.topic] * n, pa.string()))
            batch = batch.set_column(1, "partition", pa.array([one.partition] * n, pa.int32()))
            yield batch.set_column(2, "offset", pa.array(range(one.begin, one.end), pa.int64()))


class Agent:
    """`azimuth sink` without Spark: what its processes do for a batch.

    Args:
        root: where its checkpoint is.
        table: address, or one with a place for the topic.
        sample: the last records of the topics when it starts.
        other: options of both sides.
    """

    def __init__(self, root: Path, table: str, sample: Sequence[bytes], **other: str) -> None:
        both = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g"}
        given = {**both, "subscribe": "t", "positions": table, "valueFormat": "json", "valueSchema": "table", **other}
        given["sinkLanding"] = "direct"
        merge = given.pop("mergeSchema", "false")
        sink = {**both, "path": table, "checkpointLocation": str(root), "mergeSchema": merge}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source_decoder, "_sample", lambda _: iter(sample))
            first = make_decoder(SourceOptions.parse(given))
        assert first is not None
        sink["columns"] = from_arrow_schema(landed_schema(first, headers=False)).json()
        options = SourceOptions.parse({**given, "landing": json.dumps(sink)})
        self._reader = KafkaGroupReader(options, make_decoder(options, table_schema(sink)), per_batch=True)
        self._writer = DirectWriter(SinkOptions.parse(sink), table_schema(sink))
        self._root, self._last, self._number = root, Offset(), 0

    def plan(self, *ranges: Range) -> tuple[Offset, list[TaskRanges]]:
        """Plan a batch."""
        offset = Offset.of(ranges)
        return offset, self._reader.partitions(self._last.value(), offset.value())

    def run(self, offset: Offset, tasks: Sequence[TaskRanges]) -> None:
        """Run the tasks of a batch, and commit it."""
        (self._root / "offsets").mkdir(parents=True, exist_ok=True)
        (self._root / "offsets" / str(self._number)).write_text(f"v1\n{{}}\n{json.dumps(offset.value())}")
        self._writer.commit([self._writer.write(self._reader.read(one)) for one in tasks], self._number)
        self._last, self._number = offset, self._number + 1

    def rows(self, tasks: Sequence[TaskRanges]) -> int:
        """The rows that Spark counts."""
        return sum(batch.num_rows for one in tasks for batch in self._reader.read(one))

    def batch(self, *ranges: Range) -> None:
        """A batch from its plan to its commit."""
        self.run(*self.plan(*ranges))


StartAgent = Callable[..., Agent]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Kafka."""
    log = Log()
    monkeypatch.setattr("spark_sink.fetch.range_reader.fetch", log.fetch)
    monkeypatch.setattr(delta_sink, "_KEPT", {})
    return log


@pytest.fixture
def start(tmp_path: Path) -> StartAgent:
    """Start an agent with the name, and so the checkpoint, given."""

    def started(name: str, sample: Sequence[bytes], table: str = "table", **other: str) -> Agent:
        return Agent(tmp_path / name, str(tmp_path / table), sample, **other)

    return started


def _rows(table: Path) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = DeltaTable(table).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (str(row["topic"]), row["partition"], row["offset"]))


def test_spark_counts_a_row_for_each_record_of_the_batch(log: Log, start: StartAgent) -> None:
    """Also bad records, and where topics have decoders of their own."""
    agent = start("one", [OLD], "{topic}")
    agent.batch(log.add("t", 0, OLD), log.add("u", 0, OLD))
    _, tasks = agent.plan(log.add("t", 0, NEW, OLD, b"{"), log.add("u", 0, *[OLD] * 4))
    assert agent.rows(tasks) == 7


def test_an_agent_that_restarts_writes_a_new_field_as_its_neighbour_does(
    log: Log, start: StartAgent, tmp_path: Path
) -> None:
    """Restarts come at any time: half of the rows had the field in a column, the other half had not."""
    one, two = start("one", [OLD]), start("two", [OLD])
    one.batch(log.add("t", 0, OLD))
    two.batch(log.add("t", 1, OLD))
    two = start("two-again", [OLD, NEW], mergeSchema="true")
    one.batch(log.add("t", 0, NEW))
    two.batch(log.add("t", 1, NEW))
    rows = _rows(tmp_path / "table")
    assert {(row["id"], row[COLUMN]) for row in rows} == {(1, None), (2, '{"coupon":"x"}')}
    assert len(rows) == 4
    assert "coupon" not in rows[0]


def test_a_new_field_gets_a_column_that_all_agents_take_up_with_their_next_batch(
    log: Log, start: StartAgent, tmp_path: Path
) -> None:
    """`evolve`: the batch that shows it keeps it in `_rescued`, and no agent waits for its restart."""
    evolve = {"unknownFields": "evolve", "mergeSchema": "true"}
    one, two = start("one", [OLD], **evolve), start("two", [OLD], **evolve)
    one.batch(log.add("t", 0, OLD))
    two.batch(log.add("t", 1, OLD))
    planned = two.plan(log.add("t", 1, NEW))
    one.batch(log.add("t", 0, NEW))
    two.run(*planned)  # was planned before the column was there
    one.batch(log.add("t", 0, NEW))
    two.batch(log.add("t", 1, NEW))
    rows = [(row["partition"], row["coupon"], row[COLUMN]) for row in _rows(tmp_path / "table") if row["id"] == 2]
    rescued = '{"coupon":"x"}'
    assert rows == [(0, None, rescued), (0, "x", None), (1, None, rescued), (1, "x", None)]


def test_a_new_member_of_an_object_gets_a_field_of_its_struct(log: Log, start: StartAgent, tmp_path: Path) -> None:
    """Also in lists; the batch that shows it keeps it in `_rescued`."""
    evolve = {"unknownFields": "evolve", "mergeSchema": "true"}
    old, new = b'{"p": {"x": 1}, "l": [{"x": 1}]}', b'{"p": {"y": 2}, "l": [null, {"x": 1, "z": "t", "X": 5}]}'
    one, two = start("one", [old], **evolve), start("two", [old], **evolve)
    one.batch(log.add("t", 0, old))
    one.batch(log.add("t", 0, new))
    two.batch(log.add("t", 1, old, new))
    rows = [(row["p"], row["l"], row[COLUMN]) for row in _rows(tmp_path / "table")]
    before = ({"x": 1, "y": None}, [{"x": 1, "z": None}], None)
    assert rows == [
        before,
        ({"x": None, "y": None}, [None, {"x": 1, "z": None}], '{"p":{"y":2},"l":[null,{"z":"t","X":5}]}'),
        before,
        ({"x": None, "y": 2}, [None, {"x": 1, "z": "t"}], '{"l":[null,{"X":5}]}'),
    ]


def test_a_field_that_agents_saw_with_other_types_stops_neither(log: Log, start: StartAgent, tmp_path: Path) -> None:
    """The first column decides; a value that does not fit is quarantined with its reason."""
    evolve = {"unknownFields": "evolve", "mergeSchema": "true"}
    one, two = start("one", [OLD], **evolve), start("two", [OLD], **evolve)
    one.batch(log.add("t", 0, OLD))
    two.batch(log.add("t", 1, OLD))
    planned = two.plan(log.add("t", 1, b'{"id": 3, "n": "text"}'))
    one.batch(log.add("t", 0, b'{"id": 2, "n": 5}'))
    two.run(*planned)
    two.batch(log.add("t", 1, b'{"id": 4, "n": "text"}', b'{"id": 5, "n": 6}'))
    assert [(row["id"], row["n"], row[COLUMN]) for row in _rows(tmp_path / "table")] == [
        (1, None, None),
        (2, None, '{"n":5}'),
        (1, None, None),
        (3, None, '{"n":"text"}'),
        (5, 6, None),
    ]
    (bad,) = _rows(tmp_path / "table_quarantine")
    assert (bad["value"], bad["error_class"]) == (b'{"id": 4, "n": "text"}', "WrongType")


def test_of_agents_that_start_at_once_the_first_to_make_the_table_decides(
    log: Log, start: StartAgent, tmp_path: Path
) -> None:
    """Each has seen another sample, in which a member has another type; neither is refused."""
    other = b'{"id": "text", "coupon": "x"}'
    one, two = start("one", [OLD]), start("two", [other])
    first = one.plan(log.add("t", 0, OLD))
    second = two.plan(log.add("t", 1, OLD, b'{"id": 7, "coupon": "x"}'))
    two.run(*second)
    one.run(*first)
    assert DeltaTable(tmp_path / "table").schema().to_json().count('"id"') == 1
    assert [(row["partition"], row["id"], row[COLUMN]) for row in _rows(tmp_path / "table")] == [
        (0, 1, None),
        (1, 1, None),
        (1, 7, '{"coupon":"x"}'),
    ]


def test_a_column_that_somebody_adds_is_taken_up_within_a_batch(log: Log, start: StartAgent, tmp_path: Path) -> None:
    """`ALTER TABLE ... ADD COLUMN` is how a field gets the type that its owner wants."""
    agent = start("one", [OLD])
    agent.batch(log.add("t", 0, OLD, NEW))
    DeltaTable(tmp_path / "table").alter.add_columns([Field("coupon", PrimitiveType("string"))])
    agent.batch(log.add("t", 0, NEW))
    assert [(row["coupon"], row[COLUMN]) for row in _rows(tmp_path / "table")] == [
        (None, None),
        (None, '{"coupon":"x"}'),
        ("x", None),
    ]


def test_each_of_several_tables_keeps_its_own_columns(log: Log, start: StartAgent, tmp_path: Path) -> None:
    """Topics differ: a batch of both is decoded with the columns of each, also where their types differ."""
    agent = start("one", [OLD], "{topic}", subscribe="a,b,c")
    agent.batch(log.add("a", 0, OLD), log.add("b", 0, OLD))
    DeltaTable(tmp_path / "a").alter.add_columns([Field("coupon", PrimitiveType("string"))])
    DeltaTable(tmp_path / "b").alter.add_columns([Field("coupon", PrimitiveType("double"))])
    values = [NEW, b'{"id": 3, "coupon": 1.5}']
    agent.batch(*(log.add(topic, 0, *values) for topic in "abc"))
    found = {topic: [(row.get("coupon"), row[COLUMN]) for row in _rows(tmp_path / topic)][-2:] for topic in "abc"}
    assert found == {
        "a": [("x", None), ("1.5", None)],
        "b": [(None, None), (1.5, None)],
        "c": [(None, '{"coupon":"x"}'), (None, '{"coupon":1.5}')],
    }
    # What only some tables have is left out where the columns of all are asked for, as those of a new table are.
    kept = kept_columns(str(tmp_path / "{topic}"))
    assert kept == pa.schema([("id", pa.int64())])


def test_what_a_sample_does_not_show_keeps_its_column_and_takes_values(
    log: Log, start: StartAgent, tmp_path: Path
) -> None:
    """`[]`, `{}` and null make columns of text, in every agent, also after a restart with a better sample."""
    agent = start("one", [b'{"id": 1, "a": [], "b": {}, "c": null}'])
    agent.batch(log.add("t", 0, b'{"id": 1, "a": [], "b": {}, "c": null}'))
    later = b'{"id": 2, "a": [1.50], "b": {"x": 1}, "c": true}'
    start("two", [later]).batch(log.add("t", 1, later))
    row = _rows(tmp_path / "table")[-1]
    assert {name: row[name] for name in ("id", "a", "b", "c", COLUMN)} == {
        "id": 2,
        "a": "[1.50]",
        "b": '{"x":1}',
        "c": "true",
        COLUMN: None,
    }


def test_a_deleted_table_is_not_made_by_a_query_that_had_rows_in_it(
    log: Log, start: StartAgent, tmp_path: Path
) -> None:
    """The sink says that the table was deleted; a new one in its place would hide that."""
    agent = start("one", [OLD])
    agent.batch(log.add("t", 0, OLD))
    (tmp_path / "table").rename(tmp_path / "elsewhere")
    agent.plan(log.add("t", 0, OLD))
    assert not (tmp_path / "table").exists()
    start("two", [OLD]).plan(log.add("t", 0, OLD))
    assert (tmp_path / "table").exists()


def test_a_table_without_columns_of_values_takes_those_of_the_sample(tmp_path: Path) -> None:
    """A table of raw bytes whose query decodes from now on."""
    write_deltalake(tmp_path / "table", pa.table({"topic": ["t"], "value": [b"v"]}))
    assert kept_columns(str(tmp_path / "table")) is None
    assert kept_columns(str(tmp_path / "none")) is None


def test_rows_of_a_table_that_evolves_have_the_columns_of_table_and_sample(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark fixes the columns of rows at the start of a query, which is then when a new field gets its column."""
    DeltaTable.create(tmp_path / "table", schema=Schema.from_arrow(pa.schema([("id", pa.int64())])))
    monkeypatch.setattr(source_decoder, "_sample", lambda _: iter([NEW, b'{"id": "text", "coupon": "y"}']))
    given = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g", "subscribe": "t", "valueFormat": "json"}
    table = {"valueSchema": "Table", "positions": str(tmp_path / "table"), "sinkLanding": "rows"}
    for policy, names in (("evolve", ["id", "coupon", COLUMN]), ("rescue", ["id", COLUMN]), ("ignore", ["id"])):
        decoder = make_decoder(SourceOptions.parse({**given, **table, "unknownFields": policy}))
        assert decoder is not None
        assert decoder.columns.names == names


def test_inferred_columns_without_a_table_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source of a hand-written query cannot know what becomes of its columns."""
    monkeypatch.setattr(source_decoder, "_sample", lambda _: iter([OLD]))
    given = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g", "subscribe": "t", "valueFormat": "json"}
    found = make_decoder(SourceOptions.parse(given))
    assert found is not None
    assert found.columns.names[:-1] == infer_columns([OLD]).names
    assert "set valueSchema" in "".join(capsys.readouterr())
    make_decoder(SourceOptions.parse(given), found.columns)
    assert not "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("other", "said"),
    [({}, "needs the option 'positions'"), ({"valueFormat": "avro", "schema.registry.url": "u"}, "is for valueFormat")],
    ids=["no table", "avro"],
)
def test_a_schema_of_no_table_is_refused(other: dict[str, str], said: str) -> None:
    """One sentence that says what to add."""
    given = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g", "subscribe": "t", "valueFormat": "json"}
    with pytest.raises(OptionError, match=said):
        SourceOptions.parse({**given, "valueSchema": "table", **other})


@pytest.mark.parametrize("positions", ["/lake/{topic}", '["/lake/a", "/lake/b"]', "/lake/one"])
@pytest.mark.parametrize("landing", ["", "rows", "direct"])
def test_rows_that_may_lose_a_column_are_refused(landing: str, positions: str) -> None:
    """A field without a column in the table is in `_rescued` after a restart, also if the query drops it."""
    given = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g", "subscribe": "t", "valueFormat": "json"}
    given |= {"valueSchema": "table", "positions": positions}
    given |= {"sinkLanding": landing} if landing else {}
    said = {"": "a query of your own", "rows": "set landing=direct"}.get(landing)
    if said is None or (landing == "rows" and positions == "/lake/one"):
        SourceOptions.parse(given)
        return
    with pytest.raises(OptionError, match=said):
        SourceOptions.parse(given)
