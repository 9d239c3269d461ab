"""The rules behind the partitioning, as pure functions: which partitions may take a record, and which one does.

* `producer_settings`: the settings of a producer, as one value.
* `leader_locality`: the partitions whose leader is in the zone, and the fallbacks.
* `key_hash`: the hash of a key: librdkafka's partitioners.
* `key_mapping`: from the hash to a partition, among all or among the local ones.
* `sticky`: the next partition for records without a key (KIP-794).
* `skew_guard`: how much locality to give up against skew.
"""
