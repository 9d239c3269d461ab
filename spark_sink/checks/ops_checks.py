"""The question about an ops log: whether its table can be written."""

from spark_sink.checks.findings import Check
from spark_sink.checks.table_checks import check_writable
from spark_sink.lake.ops_log.ops_settings import OpsSettings
from spark_sink.lake.ops_log.ops_table import OpsTable


def ops_checks(ops: OpsSettings | None) -> list[Check]:
    """Return the question about the ops log, if there is one."""
    if ops is None:
        return []
    return [Check(subject="ops log", place=ops.table, ask=lambda: _ops_log(ops))]


def _ops_log(ops: OpsSettings) -> str:
    there = OpsTable(ops.table, ops.storage).check()
    check_writable(ops.table, ops.storage)
    return f"{ops.table}: {'exists' if there else 'new; the first write creates it'}"
