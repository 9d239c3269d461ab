"""Membership without fetching: `GroupMember` joins a group, owns partitions and commits.

* `group_member`: `GroupMember`.
* `membership_thread`: the thread that joins, sends heartbeats and leaves.
* `kafka_python_corrections`: corrections of kafka-python's joins.
* `fatal_errors`: errors that end a membership, and those after which it tries again.
* `rebalance_listener`: passes rebalances on; `callback_thread`: runs the callbacks outside the event loop.
* `ownership`: the partitions of a member, as a value.
* `session_timeout`: the partitions are lost when the coordinator has not answered for a session.
* `member_commits`: Kafka commits under the member's generation.
* `broker_assigned_member`: `BrokerAssignedMember`: the same interface where the broker assigns (KIP-848).
* `broker_assigned_thread`: its thread, which polls librdkafka.
* `broker_assigned_offsets`: its commits; `broker_assigned_errors`: its errors.
* `broker_assigned_callbacks`: the callbacks for which its thread waits.
* `first_answer`: its wait for a broker.
* `on_assigned_once`: calls `on_assigned` and `on_lost` once for each partition.
* `own_process`: calls in a forked child are refused.
* `ending_thread`: the end of a member, which Ctrl-C does not interrupt.
* `thread_calls`: calls that one thread makes for the others.
"""
