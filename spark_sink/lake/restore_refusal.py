"""Refuses tables whose positions may be ahead of their rows, until a rewind.

A RESTORE keeps the positions, and so does a CREATE OR REPLACE TABLE.
"""

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
        TableError: a RESTORE or a CREATE OR REPLACE TABLE left positions that the group had before it.
    """
    base, found = base_of(uri), log.transactions
    replaced = log.replaced if base is None else -1  # a rewind puts back only what a RESTORE of a quarantine took
    at = max(log.restored, replaced)
    if at <= found.get(rewound(group), -1):
        return
    if all(beginning(group, key) in log.set_since_rows_removed for key in parse_positions(found, group)):
        return
    if base is not None:
        raise TableError(
            f"{uri}: version {at} is a RESTORE of a quarantine, which took bad records back; nothing was "
            f"written. `azimuth rewind {base} --apply` puts them back"
        )
    what = "RESTORE, which takes rows back" if at > replaced else "CREATE OR REPLACE TABLE, which removes rows"
    raise TableError(
        f"{uri}: version {at} is a {what} and leaves the positions; nothing was "
        f"written, because the offsets between would be lost. `azimuth rewind {uri} --apply` "
        "sets the positions to what the rows hold"
    )
