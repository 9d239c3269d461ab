"""A change of a table as the parts of a Delta commit: files, application transactions, and a note for the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deltalake import Transaction
from deltalake.transaction import AddAction

from spark_sink.lake.delta_log_reader import lasting
from spark_sink.lake.file_descriptions import describe_quarantined
from spark_sink.lake.positions_in_delta_log import application, batch_write, beginning, identity, quarantined, replays
from spark_sink.lake.table_contract import Change, DataFile


@dataclass(frozen=True, slots=True)
class CommitParts:
    """The parts of one commit.

    Attributes:
        files: to add.
        transactions: application transactions to set, see `positions_in_delta_log`.
        note: JSON for the table's history.
    """

    files: Sequence[AddAction]
    transactions: Sequence[Transaction]
    note: Mapping[str, object]

    @classmethod
    def of(cls, change: Change, group: str) -> "CommitParts":
        """Return the parts of a group's change."""
        transactions = [
            *(lasting(application(group, key), end) for key, end in change.positions.items()),
            *(lasting(beginning(group, key), begin) for key, begin in change.beginnings.items()),
            *(lasting(identity(group, topic), number) for topic, number in change.identities.items()),
            *(lasting(batch_write(group, query), number) for query, number in change.writes.items()),
        ]
        note = dict(change.note)
        if change.replays is not None:
            transactions.append(lasting(replays(group), change.replays))
        if change.quarantined is not None:
            transactions += [lasting(quarantined(group, key), end) for key, end in change.quarantined.ends.items()]
            note["quarantined"] = describe_quarantined(group, change.quarantined)
        return cls([_add(file) for file in change.files], transactions, note)


def _add(file: DataFile) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.size_bytes,
        partition_values=file.partition_values,
        modification_time=file.written_ms,
        data_change=True,
        stats=file.stats,
    )
