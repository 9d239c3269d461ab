"""Files of a table as Spark writes them by default: times as INT96."""

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction


def rewrite_as_spark(table: str) -> None:
    """Rewrite each file with the same rows, as Spark's MERGE, UPDATE and OPTIMIZE do."""
    handle = DeltaTable(table)
    actions: list[AddAction | RemoveAction] = []
    for file in pa.table(handle.get_add_actions(flatten=True)).to_pylist():
        rows, new = pq.read_table(Path(table) / file["path"]), Path(table) / f"spark-{uuid.uuid4().hex}.parquet"
        pq.write_table(rows, new, use_deprecated_int96_timestamps=True)
        stats = json.dumps({"numRecords": rows.num_rows})
        actions += [
            RemoveAction(file["path"], True, 0, file["size_bytes"], {}),  # noqa: FBT003 -- data changes
            AddAction(new.name, new.stat().st_size, {}, 0, True, stats),  # noqa: FBT003 -- data changes
        ]
    handle.create_write_transaction(
        actions, "append", handle.schema(), [], commit_properties=CommitProperties(max_commit_retries=0)
    )
