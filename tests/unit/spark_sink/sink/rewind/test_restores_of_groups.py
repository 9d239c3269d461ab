"""RESTORE and rewind on a table of two groups: no hole, no double, and no refusal of a group that lost nothing.

Each commit decides again which of its records are bad, so after a rewind the same offsets may go to the other table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from spark_sink import positions
from spark_sink.errors import TableError
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.landed_offsets import landed_offsets
from tests.raw_rows import SCHEMA

GROUPS = ("g", "h")  # each reads a topic of its own name
Step = tuple[str, object]
Commit = tuple[str, tuple[bool, ...]]
Records = Mapping[int, bool]
"""Whether the record is bad, by offset."""


@dataclass
class Model:
    """What the table should do.

    Attributes:
        history: the records of each version, by topic.
        positions: of each group that has begun.
        doubtful: groups that had positions at a RESTORE, and were not rewound since.
        bad: groups that ever had a bad record.
        unresolved: groups that were not rewound since a RESTORE of the quarantine.
        taken: that RESTORE may have taken bad records, and no group was rewound since.
    """

    history: list[Mapping[str, Records]] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    unresolved: set[str] = field(default_factory=set)
    taken: bool = False

    def records(self, group: str) -> Records:
        """The records of the newest version."""
        return self.history[-1].get(group, {}) if self.history else {}

    def offsets(self, group: str, *, bad: bool) -> list[int]:
        """The offsets that are in the table, or in its quarantine."""
        return sorted(at for at, is_bad in self.records(group).items() if is_bad == bad)

    def end(self, group: str) -> int:
        """The offset after the last row."""
        return max(self.offsets(group, bad=False), default=-1) + 1


def _commit(path: str, group: str, begin: int, bad: tuple[bool, ...]) -> None:
    """As many offsets as `bad` says, by a new process."""
    options = SinkOptions.parse({"path": path, "kafka.group.id": group, "checkpointLocation": "c", "compactEvery": "0"})
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    rows = [
        {"topic": group, "partition": 0, "offset": begin + n, "value": b"v"}
        | ({COLUMN: {"error_class": "Bad", "value": b"v"}} if is_bad else {})
        for n, is_bad in enumerate(bad)
    ]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range(group, 0, begin, begin + len(bad))])
    Tables(options).commit(offset, sorting.close(), normal_schema(SCHEMA), 0)


def _landed(path: str, group: str) -> list[int]:
    return landed_offsets(path, group) if DeltaTable.is_deltatable(path) else []


def _take_commit(path: str, model: Model, group: str, bad: tuple[bool, ...]) -> None:
    begin = model.positions.get(group, 0)
    if group in model.doubtful | (model.unresolved & model.bad):
        with pytest.raises(TableError, match="is a RESTORE"):
            _commit(path, group, begin, bad)
        return
    _commit(path, group, begin, bad)
    model.positions[group] = begin + len(bad)
    model.bad |= {group} if any(bad) else set()
    if not model.history:
        model.history.append({})  # the version that created the table
    records = {**model.records(group), **{begin + n: is_bad for n, is_bad in enumerate(bad)}}
    model.history.append({**model.history[-1], group: records})


def _take_rewind(path: str, model: Model, group: str) -> None:
    end = model.end(group)
    if end > model.positions[group]:
        with pytest.raises(TableError, match="past its position"):
            rewind(path, group, apply=True)
        return
    version = DeltaTable(path).version()
    rewind(path, group, apply=True)
    # Bad records that follow the rows without a gap may stay, so that they need not be read again.
    rows, end = end, positions(path, group).get(TopicPartition(group, 0), 0)
    assert rows <= end <= model.positions[group]
    assert all(model.records(group)[at] for at in range(rows, end))
    kept = {at: is_bad for at, is_bad in model.records(group).items() if at < end}
    model.history += [{**model.history[-1], group: kept}] * (DeltaTable(path).version() - version)
    model.positions[group] = end
    model.doubtful.discard(group)
    model.unresolved.discard(group)
    model.taken = False


def _take_bad(path: str, number: int, model: Model) -> None:
    if DeltaTable.is_deltatable(path) and (newest := DeltaTable(path).version()):
        DeltaTable(path).restore(number % newest)
        model.unresolved, model.taken = set(GROUPS), True


def _take(step: Step, path: str, model: Model) -> None:
    what, which = step
    if what == "commit":
        _take_commit(path, model, *which)  # type: ignore[misc]  # a commit's
    elif not model.history:
        return
    elif what == "restore":
        version = int(str(which)) % (len(model.history) - 1)
        DeltaTable(path).restore(version)
        model.history.append(model.history[version])
        model.doubtful = set(model.positions)
    elif what == "restore quarantine":
        _take_bad(quarantine_of(path), int(str(which)), model)
    elif what == "rewind" and which in model.positions:
        _take_rewind(path, model, str(which))
    elif what == "checkpoint":
        DeltaTable(path).create_checkpoint()


def _good(group: str, number: int = 2) -> Step:
    return "commit", (group, (False,) * number)


def _some_bad(group: str, bad: str) -> Step:
    return "commit", (group, tuple(one == "b" for one in bad))


STEPS = st.one_of(
    st.tuples(
        st.just("commit"),
        st.tuples(st.sampled_from(GROUPS), st.lists(st.booleans(), min_size=1, max_size=3).map(tuple)),
    ),
    st.tuples(st.just("rewind"), st.sampled_from(GROUPS)),
    st.tuples(st.just("restore"), st.integers(0, 9)),
    st.tuples(st.just("restore quarantine"), st.integers(0, 9)),
    st.just(("checkpoint", "")),
)


@pytest.mark.parametrize("examples", [2, pytest.param(150, marks=pytest.mark.slow)])
def test_each_group_is_refused_exactly_while_it_may_have_lost_rows(examples: int) -> None:
    """One group's rewind says nothing about another's positions; a RESTORE before its first row took nothing."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(STEPS, min_size=4, max_size=12))
    # One rewind is not that of the other group.
    @example(steps=[_good("g"), _good("h"), ("restore", 0), ("rewind", "g"), _good("h"), _good("g")])
    # A RESTORE before the first position took nothing from the group, with and without a checkpoint after it.
    @example(steps=[_good("g"), ("restore", 0), _good("h"), _good("h")])
    @example(steps=[_good("g"), ("restore", 0), _good("h"), ("checkpoint", ""), _good("h")])
    # RESTORE to before the first position takes all rows of the group.
    @example(steps=[_good("g"), ("restore", 0), _good("g"), ("rewind", "g"), _good("g")])
    # A second RESTORE brings rows back that the first one had taken.
    @example(steps=[_good("g"), _good("g"), ("restore", 1), ("rewind", "g"), ("restore", 2), ("rewind", "g")])
    # A second RESTORE goes to before the rewind, where other records were bad than now.
    @example(
        steps=[
            _some_bad("g", "bg"),
            ("restore", 0),
            ("rewind", "g"),
            _some_bad("g", "gb"),
            ("restore", 1),
            ("rewind", "g"),
        ]
    )
    # A RESTORE of the quarantine: before and after a rewind, and with a group that begins after it.
    @example(
        steps=[
            _some_bad("g", "gb"),
            ("restore", 0),
            ("rewind", "g"),
            _some_bad("g", "bg"),
            ("restore quarantine", 1),
            _some_bad("h", "bg"),
            _some_bad("h", "bg"),
            ("rewind", "g"),
            _some_bad("g", "bg"),
            ("restore quarantine", 0),
            ("rewind", "h"),
            _some_bad("h", "gb"),
        ]
    )
    def check(steps: list[Step]) -> None:
        with TemporaryDirectory() as folder:
            path, model = str(Path(folder) / "table"), Model()
            for step in steps:
                _take(step, path, model)
            for group in GROUPS:
                assert _landed(path, group) == model.offsets(group, bad=False)
                if group not in model.doubtful and not model.taken:
                    assert _landed(quarantine_of(path), group) == model.offsets(group, bad=True)

    check()
