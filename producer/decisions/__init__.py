"""The rules behind the partitioning, as pure functions: which partitions may take a record, and which one does.

* `producer_settings`: the settings of a producer, as one value.
* `leader_locality`: the partitions whose leader is in the zone, and the fallbacks.
* `librdkafka_partitioners`: librdkafka's partitioners, and what a missing key means to each.
* `key_mapping`: from a key to its hash, and to a partition among all or among the local ones.
* `sticky`: the next partition for records without a key (KIP-794).
* `skew_guard`: how much locality to give up against skew.
"""
