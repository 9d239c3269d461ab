"""Membership alone: `GroupMember` joins a group, owns partitions and commits; it fetches nothing.

* `group_member`: `GroupMember`.
* `membership_thread`: the thread that joins, sends heartbeats and leaves.
* `joining`: what a join needs beyond kafka-python.
* `rebalance_callbacks`: assigned and revoked, called beside the event loop.
* `ownership`: what a member holds, as a value.
* `fenced_commits`: Kafka commits under the member's generation.
"""
