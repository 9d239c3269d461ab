"""`kafka-group`: Spark's source, a member of the consumer group.

* `kafka_source`: Spark's entry point.
* `stream_reader`: Spark's calls on the reader.
* `trigger_decisions`: what happens at each trigger: hold, commit, place, plan.
* `membership_session`: the membership while a query lives.
* `group_contract`: what the reader asks of its group, as a Protocol.
* `group_membership`: its membership, a `GroupMember`.
* `autoscaled_workers`: workers per topic as the autoscaler publishes them.
* `value_decoding`: the decoder that the options ask for.
* `orphan_watch`: ends the reader when its query is gone.
* `ownership_telemetry`: ownership and lag as lines.
"""
