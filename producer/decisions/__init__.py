"""The rules of the partitioning, as pure functions: the candidate partitions of a record, and the choice among them.

* `producer_settings`: the settings of a producer, as one value.
* `candidate_partitions_in_zone`: the partitions whose leader is in the zone, the fallbacks, and the time that a
  leader must have stayed before records follow it back.
* `rack_warning`: says why no record can stay in its zone.
* `partitioner_names`: librdkafka's partitioners, and their handling of missing keys.
* `key_hash`: hashes a key, and maps it to a partition of all, as Java does.
* `rendezvous_slots`: maps a key's hash to a partition among the local ones.
* `record_bytes`: the bytes of keys, values and headers.
* `sticky`: the next partition for records without a key (KIP-794).
* `application_partitioner`: the application's own partitioner, composed with the zone.
* `skew_guard`: the locality to give up in order to bound skew.
"""
