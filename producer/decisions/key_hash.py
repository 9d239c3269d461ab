"""The hash of a key, and Java's mapping of it to all partitions of a topic.

Kafka's murmur2 (seed 0x9747b28c) is the hash of Java's mapping and, by default, of the mappings inside a zone: a key
needs one hash, and both clients agree.
"""

from collections.abc import Callable
from random import randrange

from confluent_kafka import consistent, fnv1a, murmur2

from producer.decisions.partitioner_names import ClientPartitioner

Hash = Callable[[bytes, int], int]
"""Maps a key and a number of slots, 1 or more, to a slot."""


def key_hash(partitioner: ClientPartitioner) -> Hash:
    """Return a partitioner's hash of keys; for `random` one that draws a slot.

    That of `murmur2` over all partitions is Java's mapping: `toPositive(murmur2(key)) % partitions`, also for an empty
    key.

    Source: BuiltInPartitioner.partitionForKey of Apache Kafka.
    """
    return _HASHES[partitioner.removesuffix("_random")]


def _random(key: bytes, slots: int) -> int:  # noqa: ARG001 - the partitioner ignores keys
    return randrange(slots)  # noqa: S311 - spreads load, guards nothing


_HASHES: dict[str, Hash] = {"consistent": consistent, "murmur2": murmur2, "fnv1a": fnv1a, "random": _random}
