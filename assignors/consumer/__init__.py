"""`GroupConsumer`: a `GroupMember` for membership, librdkafka for fetching.

* `group_consumer`: `GroupConsumer`.
* `configuration`: one configuration split for both clients.
* `rebalance_handling`: what a rebalance does to member and fetching.
* `rebalance_events`: rebalances on their way to the thread that polls.
* `fetching`: records of owned partitions only.
* `consumed_offsets`: how far the program has come.
* `ordered_commits`: Kafka commits in the order they were asked for.
* `broker_queries`: positions, watermarks, metadata.
"""
