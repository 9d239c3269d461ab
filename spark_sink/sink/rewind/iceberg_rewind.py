"""Sets the positions of an Iceberg table back to what its rows hold, after a rollback or a delete of rows.

A rollback removes rows and leaves the properties, so the positions of all groups are ahead of the rows. One commit
sets all of them, on top of the snapshot whose rows were read:

1. The quarantine gets the bad records that commits have named, and a mark. A writer that named some and was stopped
   notices the mark, and does not add them a second time.
2. The table gets its positions, and a mark.
3. The quarantine loses the records from the new positions on: the agents read them again.

After a crash before the second step the table is as it was. After a crash before the third step the quarantine is
ahead of its table. The sink refuses this state, and the next rewind completes it, and does not change the positions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_sink.errors import ConflictError, TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import COLUMNS, Runs, named_group, scan
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.positions_in_table_properties import GroupState, Rewind, State
from spark_sink.lake.iceberg.property_commit import set_state, without_rows_from
from spark_sink.lake.iceberg.rollback_detection import is_rolled_back
from spark_sink.lake.iceberg.rolled_back_positions import former_state, read_again, rewound_past, with_rewind
from spark_sink.lake.iceberg.stored_files import refuse_deletes
from spark_sink.lake.iceberg.stored_rows import StoredTable, open_stored, quarantined_rows
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import no_iceberg_table
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine.quarantine_commit import add_those_left, has_lost, refuse_other_table
from spark_sink.sink.rewind.rewind_commit import NOTE
from spark_sink.sink.rewind.rewound_rows import above, in_both, refuse_undone
from spark_sink.sink.rewind.set_back_positions import Rewound, ahead, behind, quarantine_changes

_HOW = "its current snapshot was set to one with rows that an earlier rewind had left out"

Ends = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a rewind changes.

    Attributes:
        table: as it was read.
        quarantine: as it was read; None if there is none.
        rolled_back: the rows are not those of the positions.
        found: positions to set back.
        reached: the positions afterwards, by group.
        floors: from which offset on the quarantine loses records, by partition.
        records: how many it loses.
        lacking: the table names bad records that the quarantine does not have yet.
    """

    table: StoredTable
    quarantine: StoredTable | None
    rolled_back: bool
    found: Sequence[Rewound]
    reached: Mapping[str, Ends]
    floors: Ends
    records: int
    lacking: bool

    @property
    def changes(self) -> bool:
        """Whether the table or its quarantine has to change."""
        return bool(self.rolled_back or self.found or self.floors)


def rewind_iceberg(
    table: str, group: str | None, storage: Storage, *, apply: bool, tell: Callable[[str], None]
) -> Sequence[Rewound]:
    """Set positions that are ahead of the rows back, and remove later records from the quarantine.

    Args:
        table: address of the table.
        group: the consumer group; the positions of all groups are set, so it can only name the single group of a table.
        storage: options of the catalog.
        apply: write the change; otherwise only report it.
        tell: is called with a sentence about each change of the quarantine, once it is made.

    Returns:
        Partitions whose position changes.

    Raises:
        TableError: the table cannot be read, its quarantine was rolled back or is none, its rows were decoded together
            with bad records that an earlier rewind removed, or another writer committed in between.
    """
    address = iceberg_address(table)
    plan = _plan(address, group, storage)
    lost = any(has_lost(*_tables(address, name, storage)) for name in plan.reached)
    if apply:
        try:
            plan = _apply(address, plan, storage)
        except ConflictError as error:
            raise _meanwhile(address) from error
    for sentence in quarantine_changes(address, quarantine_of(address), plan.records, lost=lost, applied=apply):
        tell(sentence)
    return plan.found


def _apply(address: str, plan: _Plan, storage: Storage) -> _Plan:
    for name in plan.reached:
        _add_named(address, name, storage)
    if not plan.changes:
        return plan
    _mark(address, storage)
    plan = _plan(address, None, storage)  # with the bad records that were added
    if plan.lacking:  # its rows are not those of the first look
        raise _meanwhile(address)
    _set_positions(plan)
    _trim(plan)
    return plan


def _meanwhile(address: str) -> TableError:
    return TableError(f"{address}: another writer committed meanwhile. Stop the agents, and run the command again")


def _plan(address: str, group: str | None, storage: Storage) -> _Plan:
    table = open_stored(address, storage, rolled_back=True)
    if table is None:
        raise TableError(no_iceberg_table(address))
    state, metadata = table.state, table.table.metadata
    quarantine = _quarantine(address, storage)
    held = quarantine.state.groups if quarantine else {}
    groups = {name: GroupState() for name in held} | dict(state.groups)  # a table that was recreated has none yet
    if group is not None and named_group(address, sorted(groups), group) and len(groups) > 1:
        raise TableError(
            f"{address}: one commit sets the positions of all groups ({', '.join(sorted(groups))}); leave out --group"
        )
    bad = scan(quarantined_rows(address, table, storage, COLUMNS, gone=True))
    unfinished = any(ahead(one.positions, groups[name].positions) for name, one in held.items())
    rolled_back = is_rolled_back(metadata, state)
    rows = {} if unfinished and not rolled_back else scan(table.rows(COLUMNS))
    past = rewound_past(metadata, state) if rolled_back else {}
    if rolled_back:
        refuse_undone(address, state, in_both(rows, bad, read_again(metadata, state)) | above(rows, past))
    former = former_state(table.name, table.table) if rolled_back else None
    found: list[Rewound] = []
    reached: dict[str, Ends] = {}
    floors: dict[TopicPartition, int] = {}
    for name, one in groups.items():
        ends = one.positions
        if rolled_back or not unfinished:
            before = former.groups.get(name, GroupState()) if former else None
            ends = {key: _end(key, one, before, rows, bad, past) for key in one.positions}
        changed = behind(address, ends, one.positions, _HOW)
        found += changed
        reached[name] = {**one.positions, **{change.key: change.after for change in changed}}
        floors |= ahead(held.get(name, GroupState()).positions, reached[name])
    records = sum(_count_from(bad.get(key, ()), at) for key, at in floors.items())
    return _Plan(
        table=table,
        quarantine=quarantine,
        rolled_back=rolled_back,
        found=sorted(found, key=lambda one: one.key),
        reached=reached,
        floors=floors,
        records=records,
        lacking=any(_lacks(held.get(name, GroupState()), one) for name, one in state.groups.items()),
    )


def _lacks(held: GroupState, state: GroupState) -> bool:
    return any(end > held.positions.get(key, 0) for one in state.named for key, end in one.ends.items())


def _end(  # noqa: PLR0913, PLR0917 -- each says something of one partition
    key: TopicPartition,
    state: GroupState,
    former: GroupState | None,
    rows: Mapping[TopicPartition, Runs],
    bad: Mapping[TopicPartition, Runs],
    past: Ends,
) -> int:
    """Return the position that belongs to the rows of a partition.

    It is the position that was stored with these rows. If that is not known, or the quarantine lost records below it
    since, it is the end of the rows, or of the bad records that follow them without a gap: these are not read again.
    """
    before = state.positions[key]
    end = max((end for _, end in rows[key]), default=0) if key in rows else state.beginnings.get(key, before)
    if former is not None:
        at = former.positions.get(key, end)
        if at <= past.get(key, at):
            return max(end, min(at, before))
    for first, after in bad.get(key, ()):
        if first <= end < after:
            end = min(after, before)
    return end


def _count_from(runs: Runs | Sequence[tuple[int, int]], at: int) -> int:
    return sum(end - max(first, at) for first, end in runs if end > at)


def _quarantine(address: str, storage: Storage) -> StoredTable | None:
    """Open the quarantine, and refuse one whose records are not those of its positions."""
    place = quarantine_of(address)
    found = open_stored(place, storage, rolled_back=True)
    if found is None:
        return None
    writer = next((name for name, one in found.state.groups.items() if one.beginnings), "")
    refuse_other_table(place, IcebergTable(place, writer, storage, rolled_back=True).refresh())
    if is_rolled_back(found.table.metadata, found.state):
        raise TableError(
            f"{place}: it was rolled back, too, and no agent would read its bad records again; nothing was changed. "
            f"Set its current snapshot to {found.state.snapshot}, and run the command again"
        )
    try:
        refuse_deletes(found.table)
    except TableError as error:
        raise TableError(f"{place}: {error}") from error
    return found


def _tables(address: str, group: str, storage: Storage) -> tuple[IcebergTable, IcebergTable]:
    quarantine = IcebergTable(quarantine_of(address), group, storage)
    return IcebergTable(address, group, storage, rolled_back=True), quarantine


def _add_named(address: str, group: str, storage: Storage) -> None:
    """Complete the quarantine first, because bad records below the new positions stay in it; give up those gone."""
    add_those_left(*_tables(address, group, storage))


def _mark(address: str, storage: Storage) -> None:
    """Let writers that looked at the quarantine before notice the rewind."""
    if (quarantine := _quarantine(address, storage)) is not None:
        state = quarantine.state
        set_state(quarantine, lambda *_: replace(state, rewinds=state.rewinds + 1), NOTE)


def _set_positions(plan: _Plan) -> None:
    if not plan.changes:
        return
    state, metadata = plan.table.state, plan.table.table.metadata
    groups = {name: _set_back(one, plan.reached[name]) for name, one in state.groups.items()}

    def after(number: int, sequence: int) -> State:
        again = {change.key: change.after for change in plan.found}
        new = Rewind(snapshot=number, sequence=sequence, floors=plan.floors, again=again)
        return replace(state, groups=groups, rewinds=state.rewinds + 1, rewound=with_rewind(metadata, state, new))

    set_state(plan.table, after, NOTE)


def _set_back(state: GroupState, reached: Ends) -> GroupState:
    return replace(
        state,
        positions=reached,
        quarantined={key: min(end, reached.get(key, end)) for key, end in state.quarantined.items()},
        named=(),  # the quarantine has them; later it would take those from the new positions on a second time
    )


def _trim(plan: _Plan) -> None:
    """Remove the records from the new positions on from the quarantine, on top of the version that was compared.

    Agents begin as soon as the quarantine is no longer ahead of its table. So if another rewind was faster, records
    from these positions on may be new ones.
    """
    if plan.quarantine is None or not plan.floors:
        return
    state = plan.quarantine.state
    groups = {
        name: replace(one, positions={**one.positions, **ahead(one.positions, plan.reached.get(name, one.positions))})
        for name, one in state.groups.items()
    }
    removed, added = without_rows_from(plan.quarantine, plan.floors)
    set_state(plan.quarantine, lambda *_: replace(state, groups=groups), NOTE, removed, added)
