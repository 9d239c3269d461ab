"""Reads the ranges of a micro-batch from Spark's offset log, `<checkpointLocation>/offsets/<batch>`.

The file exists before the batch runs and never changes, so its content is the same after a crash. Its lines are a
version, JSON metadata, then one offset for each source of the query (`-` if a source has none yet).
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spark_sink.errors import OffsetError
from spark_sink.lake.table_addresses import Storage, folder_of_spark
from spark_sink.lake.table_storage import filesystem, read_text
from spark_sink.ranges.batch_offset import READS, Offset

_VERSIONS = ("v1", "v2")


def batch_offset(checkpoint: str, batch: int, storage: Storage | None = None) -> Offset:
    """Read the ranges of one batch.

    Args:
        checkpoint: the query's checkpointLocation.
        batch: Spark's number of the batch.
        storage: options of the object store, if the checkpoint is on one.

    Raises:
        OffsetError: the file is missing or has no offset of kafka-group.
    """
    path = f"offsets/{batch}"
    text = read_text(filesystem(folder_of_spark(checkpoint), storage), path)
    if text is None:
        raise OffsetError(f"{checkpoint}/{path}: no such file; was the checkpoint deleted while the query ran?")
    return parse_offset_log(text, f"{checkpoint}/{path}")


def parse_offset_log(text: str, place: str) -> Offset:
    """Find the offsets of kafka-group in the text of an offset log; several sources are merged.

    Args:
        text: the whole file.
        place: path of the file, for messages.

    Raises:
        OffsetError: there is no offset, or two sources read the same topic.
    """
    version, *lines = text.splitlines() or [""]
    if version not in _VERSIONS:
        raise OffsetError(f"{place}: version {version!r} of Spark's offset log is not known, only {_VERSIONS}")
    values = list(_values(lines[1:]))
    found = [Offset.parse(value) for value in values]
    if not found:
        raise OffsetError(f"{place}: no source of this query is kafka-group, so the offsets of a batch are unknown")
    _refuse_shared((value[READS] for value in values if READS in value), place)
    _refuse_shared((f"the topic {topic!r}" for offset in found for topic in {one.topic for one in offset}), place)
    identities = {topic: one for offset in found for topic, one in offset.identities.items()}
    return Offset.of((one for offset in found for one in offset), identities)


def _refuse_shared(read: Iterable[str], place: str) -> None:
    """Refuse two sources that read one topic: as members of a group they share its partitions.

    A query that loads a topic twice, and passes one half of the records on from each, would lose half of both. A source
    whose partitions are all with the other one has an offset without topics, but it names what it reads.

    Args:
        read: what each source reads: its topics, or the name in its offset.
        place: path of the offset log.
    """
    for what, sources in Counter(read).most_common(1):
        if sources > 1:
            raise OffsetError(
                f"{place}: {sources} sources of this query read {what}. A group gives each partition to "
                "one of them, so its records would take only one of the ways; nothing was written. Use the stream "
                "once: in foreachBatch the rows of a batch can take both"
            )


def _values(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        _, brace, rest = line.partition("{")  # a name may precede the value
        try:
            value = json.loads(brace + rest)
        except ValueError:
            continue
        if isinstance(value, dict) and {"v", "partitions"} <= value.keys():
            yield value
