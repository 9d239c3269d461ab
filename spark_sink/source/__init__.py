"""`kafka-group`: Spark's source, a member of the consumer group.

* `kafka_source`: Spark's entry point.
* `stream_reader`: Spark's calls on the reader.
* `trigger_steps`: what happens at each trigger: the next batch is planned.
* `starting_positions`: where reading begins in partitions without a position.
* `log_continuity`: whether a log is still the one that was read before.
* `available_now`: when a run with Trigger.AvailableNow may end.
* `membership_session`: the membership while a query is alive.
* `group_contract`: what the reader asks of its group, as a Protocol.
* `group_membership`: its membership, a `GroupMember`.
* `name_fence`: one live member of an agent's name in a group.
* `autoscaled_workers`: workers per topic as the autoscaler publishes them.
* `value_decoding`: the decoder that the options ask for.
* `table_columns`: columns of JSON values as the sink's tables have them.
* `orphan_watch`: ends the reader when its query is gone.
* `ownership_telemetry`: ownership and lag for other processes.
"""
