"""librdkafka's partitioners: the hash of a key, and what a missing or an empty key means."""

from collections.abc import Callable
from enum import StrEnum
from random import randrange

from confluent_kafka import consistent, fnv1a, murmur2

Hash = Callable[[bytes, int], int]
"""From a key and a number of slots, 1 or more, to a slot."""


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
    def hash(self) -> Hash:
        """The hash of a key; a random slot for `random`."""
        return _HASHES[self.value.removesuffix("_random")]

    @property
    def hashes_null_keys(self) -> bool:
        """Whether records without a key all go to the partition of an empty key."""
        return self in {self.CONSISTENT, self.MURMUR2, self.FNV1A}

    @property
    def empty_is_null(self) -> bool:
        """Whether an empty key counts as no key."""
        return self is self.CONSISTENT_RANDOM


def _random(key: bytes, slots: int) -> int:  # noqa: ARG001 - the partitioner ignores keys
    return randrange(slots)  # noqa: S311 - spreads load, guards nothing


_HASHES: dict[str, Hash] = {"consistent": consistent, "murmur2": murmur2, "fnv1a": fnv1a, "random": _random}
