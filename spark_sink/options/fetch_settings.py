"""Settings of a task's reading, without imports of Kafka clients: a process that only plans a query needs none."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How a task reads.

    Attributes:
        kafka: client properties, Kafka's names.
        headers: whether batches have the column `headers`.
        timestamp_type: whether batches have the column `timestampType`.
        fail_on_data_loss: raise where records are gone, or go on after them.
        poll_timeout_s: fail after this time without a record.
        batch_bytes: close a record batch when its values pass this size.
        record_batches: fetch whole record batches from the leaders, where the client properties allow it.
        traffic: a folder for files with what the tasks received; None for none.
    """

    kafka: Mapping[str, str]
    headers: bool = False
    timestamp_type: bool = False
    fail_on_data_loss: bool = True
    poll_timeout_s: float = 120.0
    batch_bytes: int = 32 * 1024 * 1024
    record_batches: bool = True
    traffic: str | None = None
