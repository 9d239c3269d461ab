"""`kafka-group`: a Spark source that is a member of the consumer group.

* `kafka_source`: Spark's entry point.
* `stream_reader`: the reader, with the methods that Spark calls.
* `trigger_steps`: plans the next batch at each trigger.
* `starting_positions`: the starting offset of partitions without a position.
* `log_continuity`: checks that a log is the one that was read before.
* `available_now`: decides when a run with Trigger.AvailableNow may end.
* `membership_session`: the membership while a query is alive.
* `group_contract`: the reader's requirements of its group, as a Protocol.
* `group_membership`: its membership, a `GroupMember`.
* `name_fence`: one live member of an agent's name in a group.
* `autoscaled_workers`: workers per topic from the autoscaler.
* `value_decoding`: creates the decoder from the options.
* `table_columns`: columns of JSON values from the sink's tables.
* `orphan_watch`: ends the reader when its query is gone.
* `ownership_telemetry`: ownership and lag for other processes.
"""
