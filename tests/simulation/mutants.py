"""The code with one of its fences missing, or two of its steps swapped: a schedule must find each of them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

import spark_sink.lake.fenced_replacement as replacement_module
import spark_sink.sink.batch_against_table as batch_module
import spark_sink.sink.commit_by_compare_and_swap as swap_module
import spark_sink.sink.delta_sink as sink_module
import spark_sink.sink.quarantine.quarantine_commit as quarantine_module
import spark_sink.sink.quarantine.quarantine_replay as replay_module
import spark_sink.sink.rewind.bad_records_after_quarantine_restore as taken_module
import spark_sink.sink.rewind.delta_rewind as rewind_module
import spark_sink.sink.rewind.rewind_commit as commit_module
import spark_sink.sink.rows_by_table as rows_module
from spark_sink.formats.bad_values_quarantined import split
from spark_sink.formats.quarantine_addresses import SUFFIX, quarantine_of
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.delta_transaction import commit as _commit
from spark_sink.lake.positions_in_delta_log import replays
from spark_sink.lake.table_contract import Change, DataFile, Quarantined, Snapshot
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.sink.batch_against_table import Decision, Verdict, decide, judge
from spark_sink.sink.commit_by_compare_and_swap import Batch, Outcome
from spark_sink.sink.quarantine.quarantine_commit import TableWithQuarantine
from spark_sink.sink.query_tables import _QueryTable
from spark_sink.sink.rewind.set_back_positions import behind
from tests.simulation.directed_schedules import (
    met_in_quarantine,
    overwritten,
    replayed_during_rewind,
    restored_before_completion,
    restored_during_rewind,
    restored_past_a_rewind,
    rewound_before_completion,
    rewound_between_commits,
    rewound_during_replay,
    written_during_rewind,
)
from tests.simulation.kept_landing import KeptSorting
from tests.simulation.world import World

Patch = tuple[object, str, object]


def _nothing(*_: object, **__: object) -> None:
    return None


def _compare_nothing(positions: object, offset: Offset, files: list[DataFile], **more: Any) -> Decision:
    del positions
    return decide({}, offset, files, **more)


def _no_skip(cur: int | None, begin: int, end: int) -> Verdict:
    found = judge(cur, begin, end)
    return Verdict.COMMIT if found is Verdict.SKIP and begin < end else found


def _no_hole(cur: int | None, begin: int, end: int) -> Verdict:
    found = judge(cur, begin, end)
    return Verdict.COMMIT if found is Verdict.HOLE else found


_select = batch_module._select


def _no_trim(files: list[DataFile], offset: Offset, floors: Mapping[TopicPartition, int]) -> object:
    ends = {one.key: one.end for one in offset}
    return _select(
        files, offset, {key: at if at == ends[key] else offset.ranges[key].begin for key, at in floors.items()}
    )


def _decide_once() -> Callable[..., Decision]:
    made: dict[tuple[int, int], tuple[object, object, Decision]] = {}

    def once(positions: Mapping[TopicPartition, int], offset: Offset, files: object, **more: Any) -> Decision:
        # Offset and files are those of one attempt of a batch; they are kept, so that no other object gets their id.
        attempt = id(offset), id(files)
        if attempt not in made:
            made[attempt] = offset, files, decide(positions, offset, files, **more)  # type: ignore[arg-type]  # as given
        return made[attempt][-1]

    return once


_swap = DeltaLakeTable.swap


def _on_newest(*, quarantine: bool) -> Callable[[DeltaLakeTable, Snapshot, Change], None]:
    def swap(self: DeltaLakeTable, snapshot: Snapshot, change: Change) -> None:
        if self.name.endswith(SUFFIX) == quarantine and self._handle is not None:
            self._handle.update_incremental()
            snapshot = replace(snapshot, version=self._handle.version())
        _swap(self, snapshot, change)

    return swap


_refuse_other_past = DeltaLakeTable._refuse_other_past


def _forget_rewind(self: DeltaLakeTable, version: int, found: Mapping[str, int]) -> None:
    self._rewound = None
    _refuse_other_past(self, version, found)


_refresh = DeltaLakeTable.refresh


def _trust_first_look(self: DeltaLakeTable) -> Snapshot | None:
    snapshot = _refresh(self)
    if snapshot is None:
        self._rewound = None
    return snapshot


_change = swap_module._change


def _no_rows_after_a_conflict(decision: Decision, files: object, *others: Any) -> Change:
    change = _change(decision, files, *others)  # type: ignore[arg-type]  # as given
    return replace(change, files=()) if others[-1] else change


def _no_positions(*given: Any) -> Change:
    change = _change(*given)
    return replace(change, positions=dict(list(change.positions.items())[:-1]))


def _quarantine_first(self: TableWithQuarantine, batch: Batch) -> Outcome:
    ends = {one.key: one.end for one in batch.offset if any(one.key in file.spans for file in batch.bad)}
    if ends:
        own = Quarantined(files=batch.bad, ends=ends)
        quarantine_module.add_quarantined(self._table, self._quarantine, {}, own, sleep=self._sleep)
    return swap_module.commit(self._table, replace(batch, bad=()), self._quarantine, sleep=self._sleep)


_commit_both = TableWithQuarantine.commit


def _own_bad_rows_only(self: TableWithQuarantine, batch: Batch) -> Outcome:
    self._compared = True
    self._added = dict.fromkeys(batch.offset.ranges, 1 << 40)
    return _commit_both(self, batch)


_missing = quarantine_module._missing


def _add_again(table: Any, held: object, named: Any, own: Any) -> object:
    del held
    return _missing(table, {}, named, own)


class _Everything(set[str]):
    def __ge__(self, _: object) -> bool:
        return True


def _with_retries(*given: Any, **more: Any) -> None:
    _commit(*given, **{**more, "retries": None})


_set = commit_module.set_numbers


def _set_on_any_version(handle: DeltaTable, group: str, numbers: Mapping[str, int], *more: Any) -> None:
    """Without the fence of replays, which stops a replay and a rewind from passing each other in both orders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_module, "commit", _with_retries)
        _set(handle, group, {name: at for name, at in numbers.items() if name != replays(group)}, *more)


def _unmarked(**given: Any) -> Change:
    return Change(**{**given, "replays": None})


_snapshot = replay_module._snapshot


class _Far(dict[TopicPartition, int]):
    def get(self, *_: object) -> int:
        return 1 << 40


def _no_restore(*_: object) -> tuple[None, dict[str, object]]:
    return None, {}


def _no_rows_past(
    uri: str, ends: Mapping[TopicPartition, int], positions: Mapping[TopicPartition, int], how: str
) -> object:
    return behind(uri, {key: min(end, positions.get(key, 0)) for key, end in ends.items()}, positions, how)


def _refresh_first(uri: str, group: str, storage: Any) -> None:
    """Read the positions of the table before its quarantine."""
    log: Any = rewind_module.TransactionLog  # type: ignore[attr-defined]  # a schedule's, perhaps
    read = _Read(log(uri, storage).refresh())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind_module, "TransactionLog", lambda one, *more: read if one == uri else log(one, *more))
        _rewind_quarantine(uri, group, storage)


class _Read:
    def __init__(self, found: Mapping[str, int]) -> None:
        self._found = found

    def refresh(self) -> Mapping[str, int]:
        return self._found


_rewind_quarantine = rewind_module._rewind_quarantine
_add_named = rewind_module._add_named


def _add_to_restored(*given: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind_module, "DeltaLakeTable", lambda *more, **_: DeltaLakeTable(*more, restored=True))
        _add_named(*given)


def _add_by_first_look(uri: str, group: str, storage: Any) -> None:
    table = DeltaLakeTable(uri, group, storage, restored=True)
    snapshot = table.refresh()
    table.refresh = lambda: snapshot  # type: ignore[method-assign]  # only the first look counts
    rewind_module.add_those_left(  # type: ignore[attr-defined]  # its own import
        table, DeltaLakeTable(quarantine_of(uri), group, storage)
    )


def _drop_tombstones(rows: pa.Table, run: str) -> tuple[pa.Table, pa.Table]:
    good, bad = split(rows, run)
    return good.filter(pc.is_valid(good["value"])), bad


MUTANTS: Mapping[str, Callable[[], Patch]] = {
    "the position is not compared": lambda: (swap_module, "decide", _compare_nothing),
    "a replay moves the position back": lambda: (batch_module, "judge", _no_skip),
    "rows below the position are kept": lambda: (batch_module, "_select", _no_trim),
    "holes are accepted": lambda: (batch_module, "judge", _no_hole),
    "a lost answer is retried with the old decision": lambda: (swap_module, "decide", _decide_once()),
    "the table's commit goes onto any version": lambda: (DeltaLakeTable, "swap", _on_newest(quarantine=False)),
    "the quarantine's commit goes onto any version": lambda: (DeltaLakeTable, "swap", _on_newest(quarantine=True)),
    "positions without rows after a conflict": lambda: (swap_module, "_change", _no_rows_after_a_conflict),
    "rows without a position": lambda: (swap_module, "_change", _no_positions),
    "the quarantine commits before the table": lambda: (TableWithQuarantine, "commit", _quarantine_first),
    "bad rows of a dead writer are left": lambda: (TableWithQuarantine, "commit", _own_bad_rows_only),
    "the quarantine adds what it has": lambda: (quarantine_module, "_missing", _add_again),
    "compaction removes files that are gone": lambda: (replacement_module, "active_paths", lambda _: _Everything()),
    "compaction is committed with delta-rs' retries": lambda: (replacement_module, "commit", _with_retries),
    "a replay is not marked": lambda: (replay_module, "Change", _unmarked),
    "a replay ignores the positions": lambda: (
        replay_module,
        "_snapshot",
        lambda handle: replace(_snapshot(handle), positions=_Far()),
    ),
    "a rewind leaves the quarantine": lambda: (rewind_module, "_rewind_quarantine", _nothing),
    "a RESTORE is not noticed": lambda: (TransactionLog, "restored", -1),
    "a rewind is committed on any version": lambda: (rewind_module, "set_numbers", _set_on_any_version),
    "a rewind does not fence replays": lambda: (rewind_module, "_fence_of_replays", lambda *_: {}),
    "a running writer does not notice a rewind": lambda: (DeltaLakeTable, "_refuse_other_past", _forget_rewind),
    "a writer trusts its first look at a quarantine": lambda: (DeltaLakeTable, "refresh", _trust_first_look),
    "a rewind leaves rows past the positions": lambda: (rewind_module, "behind", _no_rows_past),
    "a rewind brings no bad records back": lambda: (rewind_module, "bring_back", _nothing),
    "a rewind marks a RESTORE that it has not seen": lambda: (rewind_module, "_refuse_unresolved", _nothing),
    "a rewind leaves what a RESTORE of the quarantine took": lambda: (taken_module, "find_restores", _no_restore),
    "a rewind reads the table before its quarantine": lambda: (rewind_module, "_rewind_quarantine", _refresh_first),
    "a rewind adds to a quarantine that was restored": lambda: (rewind_module, "_add_named", _add_to_restored),
    "a rewind adds what another rewind undid": lambda: (rewind_module, "_add_named", _add_by_first_look),
    "rows without a value are dropped": lambda: (rows_module, "split", _drop_tombstones),
    "files of another batch are taken": lambda: (batch_module, "_refuse_strangers", _nothing),
    "a batch that was read in part is taken": lambda: (sink_module, "refuse_unread", _nothing),
    "table and quarantine are not compared at the start": lambda: (_QueryTable, "_open", _nothing),
}

# Mutants that need a meeting which drawn schedules hardly ever have, and the schedule that has it.
DIRECTED: Mapping[str, Callable[[World], None]] = {
    "a rewind is committed on any version": replayed_during_rewind,
    "a rewind does not fence replays": rewound_during_replay,
    "the quarantine's commit goes onto any version": met_in_quarantine,
    "a rewind brings no bad records back": restored_past_a_rewind,
    "a rewind marks a RESTORE that it has not seen": restored_during_rewind,
    "a rewind reads the table before its quarantine": written_during_rewind,
    "a rewind adds to a quarantine that was restored": restored_before_completion,
    "a rewind adds what another rewind undid": rewound_before_completion,
    "a running writer does not notice a rewind": rewound_between_commits,
    "a writer trusts its first look at a quarantine": rewound_between_commits,
    "files of another batch are taken": partial(overwritten, landed_to=4, committed_to=2),
    "a batch that was read in part is taken": partial(overwritten, landed_to=2, committed_to=4),
}


# Directed schedules in which nothing is refused: the steps only need the right order.
UNREFUSED = frozenset({"a rewind brings no bad records back", "a rewind reads the table before its quarantine"})


def mutated(name: str) -> AbstractContextManager[None]:
    """The code with this mutant in it."""
    return _Mutated(MUTANTS[name]())


class _Mutated(AbstractContextManager[None]):
    def __init__(self, patch: Patch) -> None:
        self._patch, self._context = patch, pytest.MonkeyPatch.context()

    def __enter__(self) -> None:
        KeptSorting._KEPT.clear()  # without the mutant
        self._context.__enter__().setattr(*self._patch)

    def __exit__(self, *_: object) -> None:
        KeptSorting._KEPT.clear()
        self._context.__exit__(None, None, None)
