"""Schedules for meetings that drawn ones hardly ever have: each needs one certain fence."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

import spark_sink.sink.commit_by_compare_and_swap as compare_module
import spark_sink.sink.quarantine.quarantine_commit as quarantine_module
import spark_sink.sink.rewind.delta_rewind as rewind_module
from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.ranges.task_packing import pack
from spark_sink.sink.delta_sink import DirectWriter, SinkWriter
from spark_sink.sink.direct_landing import land
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.rewind.delta_rewind import _add_named, rewind
from tests.raw_rows import SCHEMA
from tests.simulation.actors import PACKING, Agent, records_of
from tests.simulation.kafka_group import TOPIC
from tests.simulation.kept_results import parsed_options
from tests.simulation.memory_store import Row
from tests.simulation.promises import GROUP
from tests.simulation.world import TABLE, World


def overwritten(world: World, *, landed_to: int, committed_to: int) -> None:
    """Another process of the agent overwrites the offset of a batch between its landing and its commit.

    Both planned the batch of this number, and the records that came in between are only in one of the two.
    """
    agent = Agent(world, "agent", "mem://checkpoints/agent", direct=True)
    given = agent._options()
    writer = DirectWriter(parsed_options(given), SCHEMA)
    landed, committed = (Offset.of([Range(TOPIC, 0, 0, end)]) for end in (landed_to, committed_to))
    messages = [
        writer.write(iter([land(agent._decoded(task), given, SCHEMA, "run", task)])) for task in pack(landed, PACKING)
    ]
    agent._write_offset(0, committed)
    try:
        writer.commit(messages, 0)
    except TableError as error:
        world.scheduler.note(f"TableError: {error}")


def replayed_during_rewind(world: World) -> None:
    """A replay of the last record commits between the reading and the commit of a rewind.

    The rewind takes the offset of this record for the end of the rows, and would have it read again.
    """
    _bad_record_of_another_group(world)
    _batch(world, "agent", Range(TOPIC, 0, 0, 4), {(0, 3)})
    done: set[str] = set()

    def until(step: str) -> None:
        while step not in done:
            world.scheduler.rest(f"wait until {step}", 1, 1)

    def repair(rows: pa.Table) -> pa.Table:
        done.add("the replay has read")
        until("the rewind has read")
        return rows.select(["topic", "partition", "offset", "value"])

    def brought_in() -> None:
        replay(TABLE, GROUP, repair)
        done.add("the replay has committed")

    def meanwhile(*given: object) -> None:
        done.add("the rewind has read")
        until("the replay has committed")
        _add_named(*given)  # type: ignore[arg-type]  # as given

    world.scheduler.spawn("replay", brought_in)
    until("the replay has read")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind_module, "_add_named", meanwhile)
        _try_rewind(world)


def rewound_during_replay(world: World) -> None:
    """A rewind takes the last record back while a replay repairs it, and an agent reads the record again, as good."""
    _bad_record_of_another_group(world)
    _batch(world, "first", Range(TOPIC, 0, 0, 4), {(0, 3)})

    def repair(rows: pa.Table) -> pa.Table:
        rewind(TABLE, GROUP, apply=True)
        return rows.select(["topic", "partition", "offset", "value"])

    try:
        replay(TABLE, GROUP, repair)
    except TableError as error:
        world.scheduler.note(f"TableError: {error}")
    _batch(world, "second", Range(TOPIC, 0, 3, 6), set())
    world.promises.check_end({0: 6})


def rewound_between_commits(world: World) -> None:
    """A RESTORE, a rewind and another agent's batch come between the two commits of an agent's first batch.

    There was no quarantine when this agent began. The quarantine is not ahead afterwards, because the other agent has
    come as far. So only the mark of the rewind tells the first agent that the records which it has to add were read
    again, and are good now.
    """
    one = Range(TOPIC, 0, 0, 4)
    add, begun = quarantine_module.add_quarantined, []

    def taken_back() -> None:
        world.table(TABLE).restore(0)
        rewind(TABLE, GROUP, apply=True)
        _batch(world, "second", one, set())
        begun.append("the second batch is done")

    def meanwhile(*given: object, **more: object) -> None:
        if not begun:
            begun.append("the first batch is in the table")
            world.scheduler.spawn("second", taken_back)
            while len(begun) < 2:
                world.scheduler.rest("wait until the second batch is done", 1, 1)
        add(*given, **more)  # type: ignore[arg-type]  # as given

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine_module, "add_quarantined", meanwhile)
        try:
            _batch(world, "first", one, {(0, 3)})
        except TableError as error:
            world.scheduler.note(f"TableError: {error}")
    world.promises.check_end({one.partition: one.end})


def met_in_quarantine(world: World) -> None:
    """A new process adds the bad record of another one, between that one's look at the quarantine and its commit.

    Somebody joins the files of the quarantine after it: to add a file that the table still has would change nothing.
    """
    begun: list[str] = []
    swapped = compare_module.swapped

    def meanwhile(*given: Any, **more: Any) -> bool:
        first = not begun
        if first:
            begun.append("the first process has looked")
            _batch(world, "second", Range(TOPIC, 0, 4, 6), {(0, 5)})
            world.table(quarantine_of(TABLE)).optimize()
        done = swapped(*given, **more)
        if first and not done:
            world.scheduler.note(f"TableError: {given[3][-1]}")
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine_module, "swapped", meanwhile)
        _batch(world, "first", Range(TOPIC, 0, 0, 4), {(0, 3)})
    world.promises.check_end({0: 6})


def restored_during_rewind(world: World) -> None:
    """A RESTORE of the quarantine comes after a rewind has put back what earlier ones took, and before its mark.

    It brings back a record that was read again, as a good one.
    """
    one = Range(TOPIC, 0, 0, 4)
    _batch(world, "first", one, {(0, 1)})
    world.table(TABLE).restore(0)
    rewind(TABLE, GROUP, apply=True)
    _batch(world, "second", one, set())

    def restore_after(*given: object) -> None:
        _add_named(*given)  # type: ignore[arg-type]  # as given
        world.table(quarantine_of(TABLE)).restore(1)

    _rewind_twice(world, restore_after)
    world.promises.check_end({one.partition: one.end})


def restored_past_a_rewind(world: World) -> None:
    """A RESTORE brings back rows that a rewind had undone, with a bad record that it took out of the quarantine."""
    one = Range(TOPIC, 0, 0, 4)
    _batch(world, "first", one, {(0, 1)})
    world.table(TABLE).restore(0)
    rewind(TABLE, GROUP, apply=True)
    _batch(world, "second", one, set())
    world.table(TABLE).restore(1)
    rewind(TABLE, GROUP, apply=True)
    world.promises.check_end({one.partition: one.end})


def restored_before_completion(world: World) -> None:
    """A RESTORE of the quarantine comes after a rewind has looked for one, and before it adds what a dead agent left.

    It brings back an earlier copy of the record that the agent left.
    """
    one = Range(TOPIC, 0, 0, 4)
    _batch(world, "first", one, {(0, 1)})
    world.table(TABLE).restore(0)
    rewind(TABLE, GROUP, apply=True)

    _killed_between_commits(world, "second", one, {(0, 1)})
    completes = rewind_module._add_named  # a mutant's, perhaps

    def restore_before(*given: object) -> None:
        world.table(quarantine_of(TABLE)).restore(1)
        completes(*given)  # type: ignore[arg-type]  # as given

    _rewind_twice(world, restore_before)
    world.promises.check_end({one.partition: one.end})


def rewound_before_completion(world: World) -> None:
    """Another rewind comes between a rewind's look at the table and its look at the quarantine.

    It undoes the batch of a dead agent, whose bad record is then read again, as a good one.
    """
    one = Range(TOPIC, 0, 0, 4)
    _killed_between_commits(world, "first", one, {(0, 1)})
    completes, refresh, steps = rewind_module._add_named, DeltaLakeTable.refresh, list[str]()

    def armed(*given: object) -> None:
        steps.append("the first rewind completes the quarantine")
        completes(*given)  # type: ignore[arg-type]  # as given

    def meanwhile(table: DeltaLakeTable) -> object:
        if len(steps) == 1 and table.name == quarantine_of(TABLE):
            steps.append("the second rewind comes")
            with pytest.MonkeyPatch.context() as undone:
                undone.setattr(rewind_module, "_add_named", completes)
                world.table(TABLE).restore(0)
                rewind(TABLE, GROUP, apply=True)
            _batch(world, "second", one, set())
        return refresh(table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind_module, "_add_named", armed)
        patch.setattr(DeltaLakeTable, "refresh", meanwhile)
        _try_rewind(world)
    world.promises.check_end({one.partition: one.end})


def _killed_between_commits(world: World, name: str, one: Range, bad: set[Row]) -> None:
    """An agent dies after the table names its bad records, and before they are in the quarantine."""

    def dies(*_: object, **__: object) -> None:
        raise TableError("the agent is killed between its two commits")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine_module, "add_quarantined", dies)
        with contextlib.suppress(TableError):
            _batch(world, name, one, bad)


def written_during_rewind(world: World) -> None:
    """An agent that runs commits to both tables after a rewind has read the table's positions the last time."""
    _batch(world, "first", Range(TOPIC, 0, 0, 4), {(0, 1)})
    written: list[str] = []

    class Log(TransactionLog):
        def refresh(self, version: int | None = None) -> Mapping[str, int]:
            found = super().refresh(version)
            if self.uri == TABLE and version is None and not written:
                written.append("second")
                _batch(world, "second", Range(TOPIC, 0, 4, 6), {(0, 5)})
            return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind_module, "TransactionLog", Log)
        rewind(TABLE, GROUP, apply=True)
    world.promises.check_end({0: 6})


def _rewind_twice(world: World, adds: Callable[..., None]) -> None:
    """Run a rewind with this in place of its step that completes the quarantine, and run it again as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind_module, "_add_named", adds)
        _try_rewind(world)
    rewind(TABLE, GROUP, apply=True)


def _try_rewind(world: World) -> None:
    """Run a rewind, and note its refusal."""
    try:
        rewind(TABLE, GROUP, apply=True)
    except TableError as error:
        world.scheduler.note(f"TableError: {error}")


def _bad_record_of_another_group(world: World) -> None:
    """If two groups write a quarantine, a rewind does not know which bad records follow the rows of its group."""
    _batch(world, "other", Range(TOPIC, 1, 0, 1), {(1, 0)}, group="other")


def _batch(world: World, name: str, one: Range, bad: set[Row], *, group: str = GROUP) -> None:
    """An agent of this name writes its first batch."""
    agent = Agent(world, name, f"mem://checkpoints/{name}", direct=False)
    writer = SinkWriter(parsed_options({**agent._options(), "kafka.group.id": group}), SCHEMA)
    agent._write_offset(0, Offset.of([one]))
    writer.commit([writer.write(iter([records_of((one,), frozenset(bad))]))], 0)
