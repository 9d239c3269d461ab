"""Data files as JSON values, for messages from a task to the sink and for a table's log."""

from collections.abc import Mapping
from typing import Any

from spark_sink.lake.table_contract import DataFile, Quarantined, Span
from spark_sink.ranges.batch_offset import TopicPartition


def describe_file(file: DataFile) -> dict[str, Any]:
    """A data file as a JSON value."""
    return {
        "path": file.path,
        "size": file.size_bytes,
        "spans": [[*key, *span] for key, span in file.spans.items()],
        "values": dict(file.partition_values),
        "stats": file.stats,
        "written": file.written_ms,
    }


def parse_file(value: Mapping[str, Any]) -> DataFile:
    """A data file from its JSON value."""
    return DataFile(
        path=value["path"],
        size_bytes=value["size"],
        spans={TopicPartition(topic, number): Span(*span) for topic, number, *span in value["spans"]},
        partition_values=value["values"],
        stats=value["stats"],
        written_ms=value["written"],
    )


def describe_quarantined(group: str, quarantined: Quarantined) -> dict[str, Any]:
    """The bad rows of one commit as a JSON value."""
    return {
        "group": group,
        "files": [describe_file(file) for file in quarantined.files],
        "ends": [[*key, end] for key, end in quarantined.ends.items()],
        "before": [[*key, end] for key, end in quarantined.before.items()],
    }


def parse_quarantined(value: Mapping[str, Any]) -> Quarantined:
    """The bad rows of one commit from their JSON value.

    Raises:
        ValueError: it has another form, as do KeyError, TypeError and AttributeError.
    """
    if not all(isinstance(value[name], list) for name in ("files", "ends", "before")):
        raise ValueError("need lists")
    return Quarantined(
        files=[parse_file(one) for one in value["files"]],
        ends={TopicPartition(topic, number): end for topic, number, end in value["ends"]},
        before={TopicPartition(topic, number): end for topic, number, end in value["before"]},
    )
