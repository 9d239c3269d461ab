"""Every feature that the Delta protocol knows: a batch is committed rightly, or refused with a sentence.

A table may have the feature before the query starts, or get it while the query runs.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_sink.errors import TableError
from tests.unit.spark_sink.sink.foreign_logs import FOREIGN, append, commit, commits, log_folder

pytestmark = pytest.mark.long

READERS = {"columnMapping", "deletionVectors", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck", "variantType"}
READERS |= {"catalogManaged", "catalogOwned-preview", "timestampNtz", "typeWidening-preview", "variantType-preview"}
READERS |= {"variantShredding-preview", "unheardOf"}

# The rows that an append adds mean the same with these; a feature alone, without its property or column, does nothing.
RIGHT = {
    "appendOnly": {"delta.appendOnly": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "checkConstraints": {},
    "columnMapping": {"delta.columnMapping.mode": "none"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "generatedColumns": {},
    "invariants": {},
    "timestampNtz": {},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "variantType": {},
    "variantType-preview": {},
}
REFUSED = {
    "allowColumnDefaults": {},
    "catalogManaged": {},
    "catalogOwned-preview": {},
    "checkpointProtection": {},
    "clustering": {},
    "coordinatedCommits-preview": {"delta.coordinatedCommits.commitCoordinator-preview": "x"},
    "domainMetadata": {},
    "icebergCompatV1": {"delta.enableIcebergCompatV1": "true"},
    "icebergCompatV2": {"delta.enableIcebergCompatV2": "true"},
    "identityColumns": {},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "inCommitTimestamp-preview": {},
    "managedCommit-preview": {},
    "materializePartitionColumns": {},
    "rowTracking": {"delta.enableRowTracking": "true"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "typeWidening-preview": {},
    "unheardOf": {},
    "vacuumProtocolCheck": {},
    "variantShredding-preview": {},
}
EXPRESSION = json.dumps({"expression": {"expression": "value IS NOT NULL"}})
# Rules that an engine keeps row by row: properties of the table, and changes of the column value.
RULES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "a check constraint": ({"delta.constraints.c": "offset > 100"}, {}),
    "column mapping": ({"delta.columnMapping.mode": "name"}, {}),
    "a generated column": ({}, {"metadata": {"delta.generationExpression": "key"}}),
    "an identity column": ({}, {"metadata": {"delta.identity.start": 1, "delta.identity.step": 1}}),
    "an invariant": ({}, {"metadata": {"delta.invariants": EXPRESSION}}),
    "a column that is never null": ({}, {"nullable": False}),
}


def _metadata(table: Path, properties: Mapping[str, str], value: Mapping[str, Any]) -> dict[str, Any]:
    lines = [json.loads(line) for line in commits(table)[0].read_text().splitlines()]
    found: dict[str, Any] = next(line["metaData"] for line in lines if "metaData" in line)
    schema = json.loads(found["schemaString"])
    mapped = "delta.columnMapping.mode" in properties and properties["delta.columnMapping.mode"] != "none"
    for number, field in enumerate(schema["fields"]):
        if mapped:
            field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
        if field["name"] == "value":
            field.update(value)
    configuration = {**found["configuration"], **properties}
    return {"metaData": {**found, "schemaString": json.dumps(schema), "configuration": configuration}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of one batch and its quarantine."""
    folder = tmp_path_factory.mktemp("whole")
    commit(folder / "table", 0)
    return folder


@pytest.fixture
def table(whole: Path, tmp_path: Path) -> Path:
    """A copy of the table, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "lake")) / "table"


def _enable(table: Path, feature: str, properties: Mapping[str, str]) -> None:
    names = {"readerFeatures": [feature] if feature in READERS else [], "writerFeatures": [feature]}
    upgrade = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **names}}
    append(FOREIGN, upgrade, _metadata(table, properties, {}))(table)


running = pytest.mark.parametrize("running", [True, False], ids=["while it runs", "before it starts"])


@running
@pytest.mark.parametrize("feature", RIGHT)
def test_a_batch_is_right_beside_these_features(table: Path, feature: str, *, running: bool) -> None:
    """The commit adds one file of plain rows, whatever Parquet, statistics and removals of others mean."""
    tables = commit(table, 10) if running else None
    _enable(table, feature, RIGHT[feature])
    begin = 20 if running else 10
    commit(table, begin, tables)
    actions = [json.loads(line) for line in commits(table)[-1].read_text().splitlines()]
    added = [one["add"] for one in actions if "add" in one]
    assert [json.loads(one["stats"])["numRecords"] for one in added] == [9]
    assert not [one for one in actions if "remove" in one or "cdc" in one]
    position = [one["txn"]["version"] for one in actions if one.get("txn", {}).get("appId") == "g/t/0"]
    assert position == [begin + 10]


@running
@pytest.mark.parametrize("feature", REFUSED)
def test_a_batch_is_refused_where_a_feature_asks_more_of_a_writer(table: Path, feature: str, *, running: bool) -> None:
    """Each of these wants something in the log or in the files that this writer does not write."""
    tables = commit(table, 10) if running else None
    _enable(table, feature, REFUSED[feature])
    _refused(table, tables)


@running
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_an_engine_keeps_row_by_row_is_refused(table: Path, rule: str, *, running: bool) -> None:
    """Files are not looked at by any engine, so the rule would not be kept; also if it is new since the start."""
    tables = commit(table, 10) if running else None
    append(FOREIGN, _metadata(table, *RULES[rule]))(table)
    _refused(table, tables, match="which a writer of data files cannot keep")


def test_a_table_that_was_replaced_in_its_log_is_refused_by_a_running_query(table: Path) -> None:
    """CREATE OR REPLACE TABLE removes the rows, and leaves the positions."""
    tables = commit(table, 10)
    replaced = _metadata(table, {}, {})
    replaced["metaData"]["id"] = "other"
    append(FOREIGN, replaced)(table)
    _refused(table, tables, match="recreated while the query ran")


def _refused(table: Path, tables: Any, match: str | None = None) -> None:
    before = {file: file.read_bytes() for file in log_folder(table).iterdir()}
    version = len(commits(table))
    with pytest.raises(TableError, match=match) as refused:
        commit(table, (version - 2) * 10, tables)
    assert {file: file.read_bytes() for file in log_folder(table).iterdir()} == before
    assert str(table) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "lost against other writers" not in str(refused.value)
