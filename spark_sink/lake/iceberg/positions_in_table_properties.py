"""The positions of all groups in one property of an Iceberg table, compressed.

A commit changes the properties of a table and its snapshot at the same time, and properties survive compaction and the
expiry of snapshots; a snapshot's own summary does not. One compressed property has 20,000 positions in 100 kB, where a
property for each would have megabytes in every version of the metadata.
"""

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from spark_sink.errors import TableError
from spark_sink.lake.file_descriptions import describe_quarantined, parse_quarantined
from spark_sink.lake.table_contract import Change, Quarantined
from spark_sink.ranges.batch_offset import TopicPartition

PROPERTY = "kafka-azimuth.positions"
_FORMAT = 1
_LEVEL = 1  # of zlib: the levels above take several times as long for a tenth of the size

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """What a table stores of one group.

    Attributes:
        positions: the next offset, by partition.
        beginnings: the first offset of the group, by partition.
        quarantined: the next offset after the newest commit that named bad rows, by partition.
        identities: the topic id of each name, as a number.
        replays: number of replays from the quarantine.
        named: bad rows that commits named and that the quarantine may lack, oldest first.
        writes: the number of the last batch write of each query.
    """

    positions: Offsets = field(default_factory=dict)
    beginnings: Offsets = field(default_factory=dict)
    quarantined: Offsets = field(default_factory=dict)
    identities: Mapping[str, int] = field(default_factory=dict)
    replays: int = 0
    named: tuple[Quarantined, ...] = ()
    writes: Mapping[str, int] = field(default_factory=dict)

    def after(self, change: Change, held: Offsets) -> "GroupState":
        """Return the state after a commit.

        Args:
            change: the commit.
            held: position of the quarantine; bad rows below it are in the quarantine and are forgotten.
        """
        named = tuple(one for one in self.named if any(end > held.get(key, 0) for key, end in one.ends.items()))
        new = change.quarantined
        return replace(
            self,
            positions={**self.positions, **change.positions},
            beginnings={**self.beginnings, **change.beginnings},
            quarantined={**self.quarantined, **(new.ends if new else {})},
            identities={**self.identities, **change.identities},
            replays=self.replays if change.replays is None else change.replays,
            named=(*named, new) if new else named,
            writes={**self.writes, **change.writes},
        )

    def conflicts(self, change: Change, seen: "GroupState") -> bool:
        """Return whether another writer has set something that the change sets, since this state was seen."""
        return (
            any(self.positions.get(key) != seen.positions.get(key) for key in change.positions)
            or any(self.identities.get(topic) != seen.identities.get(topic) for topic in change.identities)
            or any(self.writes.get(query) != seen.writes.get(query) for query in change.writes)
            or (change.replays is not None and self.replays != seen.replays)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """A rewind of a table.

    Attributes:
        snapshot: id of the snapshot of its commit.
        sequence: its sequence number.
        floors: the offset from which on it removed bad records from the quarantine, by partition.
        again: the offset from which on agents have read records again since, by partition.
    """

    snapshot: int
    sequence: int
    floors: Offsets
    again: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a table stores.

    Attributes:
        groups: by name.
        snapshot: id of the snapshot of the commit that stored this; 0 for none.
        sequence: its sequence number.
        rewinds: number of rewinds, by which running writers notice one.
        rewound: those that set positions back or removed bad records, oldest first, as long as a snapshot from before
            them can come back.
    """

    groups: Mapping[str, GroupState] = field(default_factory=dict)
    snapshot: int = 0
    sequence: int = 0
    rewinds: int = 0
    rewound: tuple[Rewind, ...] = ()


def encode(state: State) -> str:
    """Return the state as the text of the property."""
    groups = {name: _group_value(name, one) for name, one in state.groups.items()}
    value = {
        "format": _FORMAT,
        "snapshot": state.snapshot,
        "sequence": state.sequence,
        "groups": groups,
        "rewinds": state.rewinds,
        "rewound": [[one.snapshot, one.sequence, _columns(one.floors), _columns(one.again)] for one in state.rewound],
    }
    return base64.b85encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), _LEVEL)).decode()


def decode(text: str | None, table: str) -> State:
    """Read the state from the text of the property; an empty state without it.

    Raises:
        TableError: the text is invalid, or a newer version of this project wrote it.
    """
    if text is None:
        return State()
    try:
        value = json.loads(zlib.decompress(base64.b85decode(text)))
        if value["format"] != _FORMAT:
            raise TableError(f"{table}: property {PROPERTY} has the format {value['format']}, need {_FORMAT}")
        groups = {name: _group(one) for name, one in value["groups"].items()}
        return State(
            groups=groups,
            snapshot=value["snapshot"],
            sequence=value["sequence"],
            rewinds=value.get("rewinds", 0),  # missing in tables of the first version, as the next one
            rewound=tuple(
                Rewind(snapshot=snapshot, sequence=sequence, floors=_offsets(floors), again=_offsets(again))
                for snapshot, sequence, floors, again in value.get("rewound", ())
            ),
        )
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise TableError(
            f"{table}: property {PROPERTY} is damaged, so the positions are unknown; nothing was written. Restore "
            "the property from the newest metadata file in which it is whole"
        ) from error


def _group_value(name: str, state: GroupState) -> dict[str, object]:
    return {
        "positions": _columns(state.positions),
        "beginnings": _columns(state.beginnings),
        "quarantined": _columns(state.quarantined),
        "identities": dict(state.identities),
        "replays": state.replays,
        "named": [describe_quarantined(name, one) for one in state.named],
        "writes": dict(state.writes),
    }


def _group(value: Mapping[str, object]) -> GroupState:
    read: Callable[[object], object] = lambda name: value[str(name)]  # noqa: E731 -- typed access to JSON
    return GroupState(
        positions=_offsets(read("positions")),
        beginnings=_offsets(read("beginnings")),
        quarantined=_offsets(read("quarantined")),
        identities=value["identities"],  # type: ignore[arg-type]  # JSON of this module
        replays=value["replays"],  # type: ignore[arg-type]  # JSON of this module
        named=tuple(parse_quarantined(one) for one in value["named"]),  # type: ignore[attr-defined]  # JSON of this module
        writes=value.get("writes", {}),  # type: ignore[arg-type]  # missing in tables of the first version
    )


def _columns(offsets: Offsets) -> dict[str, list[list[int]]]:
    """Return partitions and offsets of each topic, as two lists."""
    found: dict[str, list[list[int]]] = {}
    for (topic, partition), at in offsets.items():
        partitions, ends = found.setdefault(topic, [[], []])
        partitions.append(partition)
        ends.append(at)
    return found


def _offsets(value: object) -> dict[TopicPartition, int]:
    columns: Iterable[tuple[str, list[list[int]]]] = value.items()  # type: ignore[attr-defined]  # JSON of this module
    return {
        TopicPartition(topic, partition): at
        for topic, (partitions, ends) in columns
        for partition, at in zip(partitions, ends, strict=True)
    }
