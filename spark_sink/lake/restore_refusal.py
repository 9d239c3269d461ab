"""Refuses tables whose positions are ahead of their rows, because a RESTORE keeps positions, until a rewind."""

from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import base_of
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.positions_in_delta_log import beginning, parse_positions, rewound


def refuse_restored(uri: str, log: TransactionLog, group: str) -> None:
    """Refuse a table that may lack rows of a group, until a rewind sets its positions.

    Args:
        uri: address of the table.
        log: of the table, as far as it was read.
        group: the consumer group.

    Raises:
        TableError: a RESTORE left positions that the group had before it.
    """
    found, at = log.transactions, log.restored
    if at <= found.get(rewound(group), -1):
        return
    if all(beginning(group, key) in log.set_since_restore for key in parse_positions(found, group)):
        return
    base = base_of(uri)
    if base is not None:
        raise TableError(
            f"{uri}: version {at} is a RESTORE of a quarantine, which took bad records back; nothing was "
            f"written. `azimuth rewind {base} --apply` puts them back"
        )
    raise TableError(
        f"{uri}: version {at} is a RESTORE, which takes rows back and leaves the positions; nothing was "
        f"written, because the offsets between would be lost. `azimuth rewind {uri} --apply` "
        "sets the positions to what the rows hold"
    )
