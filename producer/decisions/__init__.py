"""The rules of the partitioning, as pure functions: the candidate partitions of a record, and the choice among them.

* `producer_settings`: the settings of a producer, as one value.
* `leader_locality`: the partitions whose leader is in the zone, and the fallbacks.
* `leader_return`: the time that a leader must have stayed before records follow it back.
* `rack_warning`: says why no record can stay in its zone.
* `partitioner_names`: librdkafka's partitioners, and their handling of missing keys.
* `key_mapping`: maps a key to its hash, and to a partition among all or among the local ones.
* `sticky`: the next partition for records without a key (KIP-794).
* `zone_choice`: the application's own partitioner, composed with the zone.
* `skew_guard`: the locality to give up in order to bound skew.
"""
