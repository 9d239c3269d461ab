"""One schedule: what it consists of is drawn from its seed, and the real code runs in it."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import spark_sink.lake.compaction as compaction_module
import spark_sink.lake.delta_creation as creation_module
import spark_sink.lake.delta_log_reader as transactions_module
import spark_sink.lake.delta_table as delta_table_module
import spark_sink.lake.file_rewrite as rewrite_module
import spark_sink.lake.foreign_parquet as foreign_module
import spark_sink.lake.newest_commits as newest_module
import spark_sink.lake.newest_version as version_module
import spark_sink.lake.parquet_landing as landing_module
import spark_sink.lake.partition_folders as folders_module
import spark_sink.lake.positions_in_delta_log as positions_module
import spark_sink.lake.quarantine_reader as records_module
import spark_sink.lake.table_formats as formats_module
import spark_sink.lake.table_storage as storage_module
import spark_sink.lake.unwritten_quarantine as named_module
import spark_sink.lake.vacuumed_files as landed_module
import spark_sink.sink.commit_by_compare_and_swap as swap_module
import spark_sink.sink.delta_sink as sink_module
import spark_sink.sink.direct_landing as direct_module
import spark_sink.sink.quarantine.quarantine_replay as replay_module
import spark_sink.sink.query_tables as tables_module
import spark_sink.sink.rewind.bad_records_after_quarantine_restore as taken_module
import spark_sink.sink.rewind.bad_records_after_table_restore as restored_module
import spark_sink.sink.rewind.delta_rewind as rewind_module
import spark_sink.sink.rewind.positions_of_restored_version as lineage_module
import spark_sink.sink.spark_offset_log as checkpoint_module
import spark_sink.source.starting_positions as starting_module
import spark_sink.source.trigger_steps as trigger_module
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine.quarantine_commit import TableWithQuarantine, add_those_left
from tests.simulation.kafka_group import TOPIC, Coordinator, Member
from tests.simulation.kept_landing import KeptSorting
from tests.simulation.kept_results import pure_functions
from tests.simulation.memory_delta import MemoryDelta
from tests.simulation.memory_files import Files, parquet
from tests.simulation.memory_store import Store
from tests.simulation.promises import Promises
from tests.simulation.scheduler import Actor, Crash, Scheduler

TABLE = "mem://lake/table"
_MOST_RECORDS = 24  # more than the producer writes to a partition


class World:
    """The store, the group, and what is promised, of one schedule.

    Attributes:
        partitions: of the topic.
        agents: how many run.
        limit: offsets that a batch reads at most.
        compact_every: of the agents.
        restores: RESTOREs that a person runs at most.
        part_rows: rows of the quarantine that a replay commits at once.
        tombstones: records without a value, by partition and offset.
        taken: draws whether a person restores the table or its quarantine.
    """

    def __init__(self, seed: int) -> None:
        draw = Random(seed)
        self.partitions = draw.randint(1, 2)
        self.agents = draw.randint(1, 3)
        self.limit = draw.randint(2, 6)
        self.compact_every = draw.choice((0, 1, 2, 3))
        self.bad_rate = draw.choice((0.0, 0.2, 0.5))
        self.others = [name for name in ("compactor", "replay", "replay", "writer", "restore") if draw.random() < 0.4]
        self.records = draw.randint(3, 9)
        # Drawn apart, so that a seed gives the steps that it gave before this was drawn, where nothing of it is used.
        self.reach = Random(f"reach {seed}")
        self.restores = self.reach.choice((1, 2))
        self.part_rows = self.reach.choice((1, 1, 1_000_000))
        self.taken = Random(f"taken {seed}")
        rate = self.reach.choice((0.0, 0.0, 0.3))
        places = [(partition, offset) for partition in range(self.partitions) for offset in range(_MOST_RECORDS)]
        self.tombstones = frozenset(one for one in places if self.reach.random() < rate)
        self.scheduler = Scheduler(
            seed,
            fault_rate=draw.choice((0.0, 0.02, 0.05, 0.1)),
            stay=draw.choice((0.2, 0.6, 0.9)),
            calm_after=draw.randint(60, 300),
        )
        self.store = Store(self.scheduler)
        ends = {TopicPartition(TOPIC, number): self.records // 2 for number in range(self.partitions)}
        self.group = Coordinator(self.scheduler, ends)
        self.promises = Promises(self.store, TABLE, self.tombstones)
        self.store.on_commit = self.promises.check_commit
        self.produced = False
        self.ending = False
        self.rewinds = 0
        self.error: BaseException | None = None
        self.checkpoint_overwrites = draw.random() < 0.3
        self.members: dict[Actor, Member] = {}
        self.restart: dict[Actor, Callable[[], None]] = {}
        self.gone: list[Member] = []
        self.scheduler.on_pause = self._on_pause

    @property
    def table(self) -> type[MemoryDelta]:
        """What stands for `DeltaTable`."""
        return type("MemoryDeltaTable", (MemoryDelta,), {"store": self.store})

    def done(self) -> bool:
        """Whether everything was read."""
        wanted = {key.partition: end for key, end in self.group.ends.items()}
        return self.produced and not self.promises.taken and self.promises.positions == wanted

    def end_sessions(self) -> None:
        """The group drops members that ended or are silent, some time later."""
        while self.gone and self.scheduler.random.random() < 0.5:
            self.gone.pop().leave()

    def pass_by(self, what: str, least: int, most: int) -> None:
        """Rest as an actor that keeps nothing, so that a crash changes nothing."""
        try:
            self.scheduler.rest(what, least, most)
        except Crash:
            self.note_crash()

    def note_crash(self) -> None:
        """A process has ended, and another one takes its place; a schedule that is broken ends altogether."""
        if self.scheduler.broken is not None:
            raise Crash
        self.scheduler.note("a new process begins")

    def _on_pause(self, actor: Actor) -> None:
        """The group drops a member that is silent, and perhaps its agent is started a second time meanwhile."""
        if actor not in self.members:
            return
        if self.scheduler.random.random() < 0.6:
            self.gone.append(self.members[actor])
        if actor in self.restart and self.scheduler.random.random() < 0.4:
            actor.superseded = True
            again = self.restart.pop(actor)
            self.scheduler.note("is started a second time, while it is paused")
            self.scheduler.spawn(f"{actor.name}'", again)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The real modules reach this store, this clock and this group."""
        with contextlib.ExitStack() as stack:
            for module, name, value in self._edges():
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
            yield

    def _edges(self) -> Iterator[tuple[Any, str, Any]]:
        table, scheduler = self.table, self.scheduler
        yield from pure_functions()
        yield creation_module, "create_table_with_add_actions", table.create_with
        for module in (
            creation_module,
            delta_table_module,
            replay_module,
            rewind_module,
            lineage_module,
            restored_module,
            taken_module,
            storage_module,
            version_module,
        ):
            yield module, "DeltaTable", table
        for module in (
            formats_module,
            creation_module,
            delta_table_module,
            compaction_module,
            landed_module,
            replay_module,
            named_module,
            records_module,
            restored_module,
            transactions_module,
            positions_module,
            newest_module,
            version_module,
            checkpoint_module,
        ):
            yield module, "filesystem", self._filesystem
        for module in (landing_module, rewrite_module, foreign_module):
            yield module, "pq", parquet()
        yield folders_module, "uuid", SimpleNamespace(uuid4=self.store.new_name)
        for module in (rewrite_module, compaction_module):
            yield module, "time", SimpleNamespace(time=scheduler.clock)
        # Landing is kept by its rows, and a step that is there only the first time would change the schedule.
        for module in (landing_module, landed_module):
            yield module, "time", SimpleNamespace(time=lambda: scheduler.now)
        yield version_module, "time", SimpleNamespace(monotonic=lambda: scheduler.now, sleep=scheduler.sleep)
        sorting = type("Sorting", (KeptSorting,), {"store": self.store})
        for module in (sink_module, direct_module):
            yield module, "Sorting", sorting
        yield swap_module, "random", Random(0)
        yield replay_module, "_PART_ROWS", self.part_rows  # 1: a commit for each file of the quarantine
        yield tables_module, "TableWithQuarantine", partial(TableWithQuarantine, sleep=scheduler.sleep)
        yield rewind_module, "add_those_left", partial(add_those_left, sleep=scheduler.sleep)
        yield positions_module, "_LOGS", _OfProcess(scheduler, "logs")
        yield newest_module, "_kept", self._filesystem
        yield positions_module, "_LOCK", contextlib.nullcontext()
        yield sink_module, "_KEPT", _OfProcess(scheduler, "kept")
        yield starting_module, "_log", _Silent()
        yield trigger_module, "_log", _Silent()

    def _filesystem(self, uri: str, storage: object = None, *, make: bool = False, sizes: object = None) -> Files:
        del storage, make, sizes
        return Files(self.store, uri)


class _OfProcess:
    """What a module keeps: each process has its own."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self._scheduler, self._name = scheduler, name

    def __setitem__(self, key: object, value: object) -> None:
        self._kept[key] = value

    def get(self, key: object) -> Any:
        return self._kept.get(key)

    def setdefault(self, key: object, value: object) -> Any:
        return self._kept.setdefault(key, value)

    @property
    def _kept(self) -> dict[Any, Any]:
        kept: dict[Any, Any] = self._scheduler.current.memory.setdefault(self._name, {})
        return kept


class _Silent:
    """A logger that says nothing."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None
