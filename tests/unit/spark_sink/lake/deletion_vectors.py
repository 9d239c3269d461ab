"""An engine that deletes rows by a deletion vector, as it writes into the log; the vector itself is never read."""

import json
from pathlib import Path

from tests.unit.spark_sink.sink.foreign_logs import FOREIGN, append, commits

_FEATURES = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
_VECTOR = {"storageType": "i", "pathOrInlineDv": "0" * 40, "sizeInBytes": 32, "cardinality": 1}


def delete_by_vector(table: str) -> None:
    """Enable deletion vectors, and delete one row of each file."""
    path = Path(table)
    actions = [json.loads(line) for entry in commits(path) for line in entry.read_text().split("\n") if line]
    removed = {one["remove"]["path"] for one in actions if "remove" in one}
    files = [one["add"] for one in actions if "add" in one and one["add"]["path"] not in removed]
    append(FOREIGN, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **_FEATURES}})(path)
    changed: list[object] = []
    for file in files:
        changed += [
            {"remove": {"path": file["path"], "deletionTimestamp": 1, "dataChange": True, "size": file["size"]}},
            {"add": {**file, "deletionVector": _VECTOR}},
        ]
    append(FOREIGN, *changed)(path)
