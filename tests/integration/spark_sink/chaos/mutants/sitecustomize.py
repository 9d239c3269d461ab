"""Broken variants of the product, loaded by every Python process whose path has this folder: a run has to find each.

AZIMUTH_CHAOS_MUTANT names one: `lost` drops a file of every fourth commit, `doubled` adds one twice, `poison` drops the
bad rows, `retries` commits to Iceberg tables as pyiceberg does by default.
"""

import itertools
import os
from dataclasses import replace
from typing import Any

from spark_sink.lake.iceberg import iceberg_table
from spark_sink.sink import commit_by_compare_and_swap
from spark_sink.sink.batch_against_table import Decision, decide

_turns = itertools.count()
_mutant = os.environ.get("AZIMUTH_CHAOS_MUTANT", "")


def _broken(*given: Any, **named: Any) -> Decision:
    found = decide(*given, **named)
    if _mutant == "poison":
        return replace(found, keep_bad=(), trim_bad=())
    if not found.keep or next(_turns) % 4:
        return found
    if _mutant == "lost":
        return replace(found, keep=found.keep[1:])
    first = found.keep[0]
    return replace(found, trim=[*found.trim, (first, {key: span.first for key, span in first.spans.items()})])


def _repeated(table: Any, snapshot: int, appended: Any) -> None:
    """Commit by a transaction: it is repeated four times, each time with an assertion of the newest snapshot."""
    with table.transaction() as transaction:
        transaction.set_properties(dict(appended.properties))
        with transaction.update_snapshot(snapshot_properties=dict(appended.summary)).merge_append() as producer:
            producer._snapshot_id = snapshot  # the positions in the properties name this snapshot
            for one in appended.entries:
                producer.append_data_file(one)


if _mutant == "retries":
    vars(iceberg_table).update(commit=_repeated)
elif _mutant:
    vars(commit_by_compare_and_swap).update(decide=_broken)
