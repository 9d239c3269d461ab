"""Chooses the partition of a record: the core that both clients share. It asks no broker and starts no thread.

* `partition_of_record`: the partitioner of one topic, and its counts.
* `topics_in_use`: the partitioners of all topics of one producer, and their traffic.
* `produce_interpreted`: `produce` in Python.
* `packed_counts`: records and bytes of each partition.
* `cached_key_partitions`: the keys that one table has seen, for `produce_interpreted`.
* `hrw_slot_table`: the table of `local-hrw`, stored or computed.
* `produce_compiled`: the same interface in C, if there was a compiler at the build.
* `deliveries_compiled`: counts delivered records in librdkafka's threads, if there was a compiler.
"""
