"""The processes of a schedule: agents as Spark drives them, and everyone else who touches the table."""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pyarrow as pa
from deltalake import CommitProperties
from deltalake.exceptions import DeltaError

from spark_sink.errors import HoleError, SparkSinkError, TableError
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.ranges.task_packing import Packing, pack
from spark_sink.sink.delta_sink import DirectWriter, SinkWriter
from spark_sink.sink.direct_landing import land
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.source.trigger_steps import BatchPlanner
from tests.raw_rows import SCHEMA
from tests.simulation.kafka_group import TOPIC, Member
from tests.simulation.kept_results import parsed_options
from tests.simulation.memory_store import Row
from tests.simulation.promises import GROUP
from tests.simulation.scheduler import Crash
from tests.simulation.world import TABLE, World

SOURCE = SourceOptions.parse(
    {"kafka.bootstrap.servers": "x:1", "kafka.group.id": GROUP, "subscribe": TOPIC, "startingOffsets": "earliest"}
)
PACKING = Packing(tasks=2, min_tasks=2, min_records=1, min_piece=1)
_REPAIRED, _OPTIMIZES, _KEEPS, _REWINDS, _BAD_TAKEN = 0.7, 0.7, 0.5, 0.7, 0.3
_PAST_POSITION = re.compile(r"rows of t/(\d+) .* past its position .* from offset (\d+) on")
_members = itertools.count()


@cache  # never freed: `KeptSorting` tells them apart by identity
def records_of(
    ranges: tuple[Range, ...], bad: frozenset[Row], tombstones: frozenset[Row] = frozenset()
) -> pa.RecordBatch:
    """The records of some ranges, as a decoder hands them on."""
    rows: list[dict[str, object]] = []
    for one in ranges:
        for at in range(one.begin, one.end):
            value = None if (one.partition, at) in tombstones else b"v"
            rows.append({"topic": TOPIC, "partition": one.partition, "offset": at, "value": value})
            if (one.partition, at) in bad:
                rows[-1][COLUMN] = {"error_class": "Bad", "value": value}
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


class Agent:
    """A query, restarted whenever it ends.

    Args:
        world: of the schedule.
        name: of the agent; its checkpoint has it too.
        direct: the reading tasks write the files.
    """

    def __init__(self, world: World, name: str, checkpoint: str, *, direct: bool) -> None:
        self._world, self._name, self._checkpoint, self._direct = world, name, checkpoint, direct
        self._keeps = True  # valueNull=keep

    def __call__(self) -> None:
        """Run until everything was read."""
        world, scheduler = self._world, self._world.scheduler
        me = scheduler.current
        while not world.done() and not me.superseded:
            self._keeps = world.reach.random() < _KEEPS
            member = world.members[me] = Member(world.group, next(_members))
            world.restart[me] = Agent(world, self._name, self._checkpoint, direct=self._direct)
            try:
                self._run(member)
            except Crash:
                world.note_crash()
            except HoleError as error:
                scheduler.note(f"HoleError: {error}")
                self._checkpoint += "+"
            except (SparkSinkError, DeltaError, OSError) as error:
                scheduler.note(f"{type(error).__name__}: {error}")
                self._after(error)
            me.memory.clear()
            world.gone.append(member)
        world.restart.pop(me, None)

    def _after(self, error: Exception) -> None:
        """Do as the message says, as an operator would.

        A writer between its two commits, which runs through a rewind, leaves the quarantine ahead of its table. No
        restart ends that, so the operator runs the rewind again at once; other refusals end with the restorer's.
        """
        if "start again with a new checkpoint" in str(error):
            self._checkpoint += "+"  # a second process had overwritten the offset of a finished batch
        ahead = "its table's position is" in str(error)
        if "azimuth rewind" in str(error) and (self._world.ending or ahead):
            set_back(self._world)

    def _run(self, member: Member) -> None:
        world, scheduler = self._world, self._world.scheduler
        planner = BatchPlanner(
            SOURCE,
            member,
            positions=lambda partitions: positions(TABLE, GROUP, partitions=partitions),
            clock=scheduler.clock,
            sleep=scheduler.sleep,
        )
        given = self._options()
        options = parsed_options(given)
        writer = DirectWriter(options, SCHEMA) if self._direct else SinkWriter(options, SCHEMA)
        number, previous, pending = self._recover()
        rewinds = world.rewinds
        while not (world.done() or scheduler.current.superseded):
            offset = pending or planner.next_offset(previous, world.limit)
            if pending is None:
                if offset == previous:
                    if world.rewinds != rewinds:  # a person starts the agents again after a rewind
                        return
                    world.end_sessions()
                    scheduler.rest("nothing to read", 5, 30)
                    continue
                self._write_offset(number, offset)
            pending = None
            self._batch(writer, given, number, offset)
            world.promises.check_acknowledged(offset)
            scheduler.point(f"note that batch {number} is done")
            world.store.texts[f"{self._checkpoint}/commits/{number}"] = "v1\n{}"
            previous, number = offset, number + 1

    def _options(self) -> dict[str, str]:
        return {
            "path": TABLE,
            "kafka.group.id": GROUP,
            "checkpointLocation": self._checkpoint,
            "agent": self._name,
            "compactEvery": str(self._world.compact_every),
        }

    def _recover(self) -> tuple[int, Offset, Offset | None]:
        """The number of the next batch, the offset before it, and its own where it was begun."""
        texts = self._world.store.texts
        number = 0
        while f"{self._checkpoint}/commits/{number}" in texts:
            number += 1
        previous = self._offset(number - 1) or Offset()
        pending = self._offset(number)
        if pending is not None:
            self._world.scheduler.note(f"repeats batch {number}")
        return number, previous, pending

    def _offset(self, number: int) -> Offset | None:
        text = self._world.store.texts.get(f"{self._checkpoint}/offsets/{number}")
        return None if text is None else Offset.parse(text.splitlines()[-1])

    def _write_offset(self, number: int, offset: Offset) -> None:
        place = f"{self._checkpoint}/offsets/{number}"
        ranges = " ".join(f"{one.partition}:[{one.begin},{one.end})" for one in offset)
        self._world.scheduler.point(f"write offset {number}: {ranges}")
        if place in self._world.store.texts and not (self._direct and self._world.checkpoint_overwrites):
            raise TableError("Spark: another query has written this batch")
        self._world.store.texts[place] = f"v1\n{{}}\n{offset.json()}"

    def _batch(self, writer: SinkWriter, given: dict[str, str], number: int, offset: Offset) -> None:
        messages = []
        for task in pack(offset, PACKING):
            rows = self._decoded(task)
            if self._direct:
                rows = iter([land(rows, given, SCHEMA, "run", task)])
            messages.append(writer.write(rows))
        writer.commit(messages, number)

    def _decoded(self, task: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Which records are bad differs each time: another schema, another agent."""
        world = self._world
        draw, rate = world.scheduler.random.random, world.bad_rate
        bad = frozenset((one.partition, at) for one in task for at in range(one.begin, one.end) if draw() < rate)
        asked = {(one.partition, at) for one in task for at in range(one.begin, one.end)}
        if tombstones := world.tombstones & asked:
            bad = bad - tombstones if self._keeps else bad | tombstones
        world.scheduler.point(f"decode, bad are {sorted(bad)}")
        yield records_of(tuple(one._replace(generation=0) for one in task), bad, tombstones)


def compactor(world: World) -> None:
    """Joins files as agents do, and is slow at it."""

    def once() -> None:
        table = DeltaLakeTable(TABLE, GROUP)
        for _ in range(3):
            if table.refresh() is not None:
                table.compact(1)
            world.scheduler.point("wait for more versions")

    _repeat(world, 6, once)


def replayer(world: World) -> None:
    """Brings records back from quarantine, all or some."""
    draw = world.scheduler.random.random

    def repair(rows: pa.Table) -> pa.Table:
        kept = rows.filter(pa.array([draw() < _REPAIRED for _ in range(rows.num_rows)], pa.bool_()))
        return kept.select(["topic", "partition", "offset", "value"])

    _repeat(world, 4, lambda: replay(TABLE, GROUP, repair))


def other_writer(world: World) -> None:
    """Another program: it joins files by the protocol, and changes properties."""

    def once() -> None:
        handle = world.table(TABLE)
        if world.scheduler.random.random() < _OPTIMIZES:
            handle.optimize()
        else:
            handle.set_property()

    _repeat(world, 6, once)


def restorer(world: World) -> None:
    """A person takes rows back, and then sets the positions to what the rows hold; perhaps twice."""
    scheduler = world.scheduler
    for left in reversed(range(world.restores)):
        world.pass_by("wait before RESTORE", 20, 400)
        with contextlib.suppress(DeltaError, Crash):
            handle = world.table(quarantine_of(TABLE) if world.taken.random() < _BAD_TAKEN else TABLE)
            if handle.version() and world.promises.positions:  # a table without positions has nothing to set back
                handle.restore(scheduler.random.randrange(handle.version()))
        if left and world.reach.random() >= _REWINDS:
            continue
        while world.promises.taken:
            set_back(world)


def set_back(world: World) -> None:
    """Set the positions to what the rows hold, again where a call ends halfway."""
    for _ in range(50):
        try:
            rewind(TABLE, GROUP, apply=True)
        except (SparkSinkError, DeltaError, OSError) as error:
            world.scheduler.note(f"{type(error).__name__}: {error}")
            if past := _PAST_POSITION.search(str(error)):
                _delete_past(world, *past.groups())
        except Crash:
            world.note_crash()
        else:
            world.rewinds += 1
            return


def _delete_past(world: World, partition: str, offset: str) -> None:
    """Do as the refusal of a rewind says: rows that another RESTORE brought back are deleted, and read again."""
    predicate = f'(topic = \'{TOPIC}\' AND "partition" = {partition} AND "offset" >= {offset})'
    try:
        world.table(TABLE).delete(predicate, CommitProperties())
    except DeltaError as error:
        world.scheduler.note(f"{type(error).__name__}: {error}")
    except Crash:
        world.note_crash()


def producer(world: World) -> None:
    """Records arrive."""
    while sum(world.group.ends.values()) < world.records * world.partitions:
        world.pass_by("produce", 1, 30)
        key = world.scheduler.random.choice(list(world.group.ends))
        world.group.ends[key] += world.scheduler.random.randint(1, 3)
    world.produced = True


def last_agent(world: World) -> None:
    """When all others have ended: what is left is read, and nothing fails any more."""
    world.ending = True
    if world.promises.taken:
        set_back(world)
    for key in world.group.ends:  # a batch more, because bad rows that a dead agent left come with the next one
        world.group.ends[key] += 1
    Agent(world, "last", "mem://checkpoints/last", direct=False)()


OTHERS = {"compactor": compactor, "replay": replayer, "writer": other_writer, "restore": restorer}


def _repeat(world: World, most: int, once: Callable[[], object]) -> None:
    """Do something now and then; when it fails, the next time is another process."""
    for _ in range(most):
        world.pass_by("wait", 1, 100)
        if world.done():
            return
        try:
            once()
        except Crash:
            world.note_crash()
        except (SparkSinkError, DeltaError, OSError) as error:
            world.scheduler.note(f"{type(error).__name__}: {error}")
        world.scheduler.current.memory.clear()
