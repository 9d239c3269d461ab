"""`kafka-group`: a Spark source that is a member of the consumer group.

* `kafka_source`: Spark's entry point.
* `stream_reader`: the reader, with the methods that Spark calls.
* `batch_reader`: the reader of a batch, without a group, and its ranges of offsets.
* `fixed_offsets`: the offsets of a batch read as numbers, for the read and a batch write.
* `trigger_steps`: plans the next batch at each trigger.
* `received_traffic`: `QueryTraffic`, what a query received by topic and zone.
* `record_sizes`: the mean size of a topic's records.
* `starting_positions`: where a partition begins: at the table's position, the group's offset, or by the options.
* `log_continuity`: checks that a log is the one that was read before.
* `available_now`: decides when a run with Trigger.AvailableNow may end.
* `membership_session`: the membership while a query is alive.
* `group_contract`: the reader's requirements of logs and of its group, as Protocols.
* `group_membership`: its membership, a `GroupMember`; `early_membership`: one that begins before Spark asks.
* `name_fence`: one live member of an agent's name in a group.
* `autoscaled_workers`: workers per topic from the autoscaler.
* `source_decoder`: creates the decoder from the options.
* `table_columns`: columns of JSON values from the sink's tables.
* `registry_columns`: columns of Avro and Protobuf values from the newest schema of the registry.
* `query_metrics`: metrics of queries for Prometheus, from Spark's progress.
* `orphan_watch`: ends the reader when its query is gone.
* `ownership_telemetry`: ownership and lag for other processes.
* `union_read`: a table's rows, then the records of Kafka from its positions on.
"""
