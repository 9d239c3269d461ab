"""librdkafka's partitioners, with their handling of missing and empty keys."""

from enum import StrEnum


class ClientPartitioner(StrEnum):
    """The values of librdkafka's setting `partitioner`.

    Source: librdkafka's CONFIGURATION.md.
    """

    CONSISTENT = "consistent"
    CONSISTENT_RANDOM = "consistent_random"
    MURMUR2 = "murmur2"
    MURMUR2_RANDOM = "murmur2_random"
    FNV1A = "fnv1a"
    FNV1A_RANDOM = "fnv1a_random"
    RANDOM = "random"

    @property
    def hashes_null_keys(self) -> bool:
        """Whether records without a key all go to the partition of an empty key."""
        return self in {self.CONSISTENT, self.MURMUR2, self.FNV1A}

    @property
    def empty_is_null(self) -> bool:
        """Whether an empty key counts as no key."""
        return self is self.CONSISTENT_RANDOM
