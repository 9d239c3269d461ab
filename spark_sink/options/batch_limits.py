"""How much a batch reads, and how long a small one waits."""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_sink.errors import OptionError
from spark_sink.options.option_texts import duration_s, number, size_bytes

# On the slowest measured path (JSON through Spark's rows, 25 MB/s on two cores) a million records of 1 kB take a core
# 80 s, a quarter of the time after which a silent reader leaves its group (max.poll.interval.ms, 300 s).
OFFSETS_A_TASK = 1_000_000
_DELAY_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How much a batch reads.

    Attributes:
        max_offsets: maximum number of offsets of a batch.
        max_bytes: maximum number of bytes of a batch, by the mean size of a topic's records; None for no such limit.
        min_offsets: a batch waits for this many offsets; None for no wait.
        max_delay_s: longest time between two triggers that a batch waits for `min_offsets`.
    """

    max_offsets: int = OFFSETS_A_TASK
    max_bytes: int | None = None
    min_offsets: int | None = None
    max_delay_s: float = _DELAY_S


def batch_limits(given: Mapping[str, str], tasks: int) -> BatchLimits:
    """Read the options that limit a batch; those of Spark's Kafka source have its names and meanings.

    Args:
        given: options by name in lower case.
        tasks: number of tasks of a large batch.

    Raises:
        OptionError: one of them is invalid, or two contradict each other.
    """
    limits = BatchLimits(
        max_offsets=number(given, "maxOffsetsPerTrigger", None) or OFFSETS_A_TASK * tasks,
        max_bytes=size_bytes(given, "maxBytesPerTrigger", None),
        min_offsets=number(given, "minOffsetsPerTrigger", None),
        max_delay_s=duration_s(given, "maxTriggerDelay", _DELAY_S),
    )
    if limits.min_offsets is not None and limits.min_offsets > limits.max_offsets:
        raise OptionError(
            f"option 'minOffsetsPerTrigger': {limits.min_offsets} is above maxOffsetsPerTrigger, {limits.max_offsets}"
        )
    if limits.min_offsets is None and "maxtriggerdelay" in given:
        raise OptionError("option 'maxTriggerDelay' has no meaning without 'minOffsetsPerTrigger'")
    return limits
