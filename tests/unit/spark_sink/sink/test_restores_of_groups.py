"""RESTORE and rewind on a table of two groups: no hole, no double, and no refusal of a group that lost nothing."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from spark_sink.errors import TableError
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.position_rewind import rewind
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.raw_rows import SCHEMA

GROUPS = ("g", "h")  # each reads a topic of its own name
Step = tuple[str, object]


@dataclass
class Model:
    """What the table should do.

    Attributes:
        history: the rows of each version, as the end of each topic.
        positions: of each group that has begun.
        doubtful: groups that had positions at a RESTORE, and were not rewound since.
    """

    history: list[dict[str, int]] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)

    @property
    def ends(self) -> dict[str, int]:
        """The rows of the newest version."""
        return self.history[-1] if self.history else {}


def _commit(path: str, group: str, begin: int) -> None:
    """Two offsets, by a new process."""
    options = SinkOptions.parse({"path": path, "kafka.group.id": group, "checkpointLocation": "c", "compactEvery": "0"})
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    rows = [{"topic": group, "partition": 0, "offset": begin + n, "value": b"v"} for n in range(2)]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range(group, 0, begin, begin + 2)])
    Tables(options).commit(offset, sorting.close(), normal_schema(SCHEMA), 0)


def _take(step: Step, path: str, model: Model) -> None:
    what, which = step
    if what == "commit":
        begin = model.positions.get(str(which), 0)
        if which in model.doubtful:
            with pytest.raises(TableError, match="is a RESTORE"):
                _commit(path, str(which), begin)
            return
        _commit(path, str(which), begin)
        model.positions[str(which)] = begin + 2
        if not model.history:
            model.history.append({})  # the version that created the table
        model.history.append({**model.ends, str(which): begin + 2})
    elif not model.history:
        return
    elif what == "restore":
        version = int(str(which)) % (len(model.history) - 1)
        DeltaTable(path).restore(version)
        model.history.append(model.history[version])
        model.doubtful = set(model.positions)
    elif what == "rewind" and which in model.positions:
        end, position = model.ends.get(str(which), 0), model.positions[str(which)]
        if end > position:
            with pytest.raises(TableError, match="past its position"):
                rewind(path, str(which), apply=True)
            return
        version = DeltaTable(path).version()
        rewind(path, str(which), apply=True)
        model.history += [model.ends] * (DeltaTable(path).version() - version)
        model.positions[str(which)] = end
        model.doubtful.discard(str(which))
    elif what == "checkpoint":
        DeltaTable(path).create_checkpoint()


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from(GROUPS)),
    st.tuples(st.just("rewind"), st.sampled_from(GROUPS)),
    st.tuples(st.just("restore"), st.integers(0, 9)),
    st.just(("checkpoint", "")),
)


@pytest.mark.parametrize("examples", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_each_group_is_refused_exactly_while_it_may_have_lost_rows(examples: int) -> None:
    """One group's rewind says nothing about another's positions; a RESTORE before its first row took nothing."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(STEPS, min_size=4, max_size=9))
    # One rewind is not that of the other group.
    @example(
        steps=[("commit", "g"), ("commit", "h"), ("restore", 0), ("rewind", "g"), ("commit", "h"), ("commit", "g")]
    )
    # A RESTORE before the first position took nothing from the group, with and without a checkpoint after it.
    @example(steps=[("commit", "g"), ("restore", 0), ("commit", "h"), ("commit", "h")])
    @example(steps=[("commit", "g"), ("restore", 0), ("commit", "h"), ("checkpoint", ""), ("commit", "h")])
    # RESTORE to before the first position takes all rows of the group.
    @example(steps=[("commit", "g"), ("restore", 0), ("commit", "g"), ("rewind", "g"), ("commit", "g")])
    # A second RESTORE brings rows back that the first one had taken.
    @example(steps=[("commit", "g"), ("commit", "g"), ("restore", 1), ("rewind", "g"), ("restore", 2), ("rewind", "g")])
    def check(steps: list[Step]) -> None:
        with TemporaryDirectory() as folder:
            path, model = str(Path(folder) / "table"), Model()
            for step in steps:
                _take(step, path, model)
            rows = DeltaTable(path).to_pyarrow_table(columns=["topic", "offset"]).to_pylist() if model.history else []
            for group in GROUPS:
                found = sorted(row["offset"] for row in rows if row["topic"] == group)
                assert found == list(range(model.ends.get(group, 0)))

    check()
