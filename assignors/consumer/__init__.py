"""`GroupConsumer`: a `GroupMember` for membership, librdkafka for fetching.

* `group_consumer`: `GroupConsumer`; `partition_calls` and `broker_queries` are its other methods; `consumer_parts`:
  what all of them use, in one object; `record_steps`: the steps of `poll` and `consume`; `quick_step`: the most common
  step of `consume`, `quick_step_compiled` in C if there was a compiler at the build, `quick_step_interpreted` if not.
* `aio_group_consumer`: `AIOGroupConsumer`, whose calls are awaited; `cancelled_reads`: the records of a
  call whose task is cancelled.
* `split_configuration`: one configuration split for both clients.
* `chosen_assignors`: the assignors that the program gives, or the default.
* `subscription`: names and patterns; `error_messages`: errors of topics and of the group, as messages.
* `rebalance_handling`: the membership and its rebalances; `new_members`: how each of its members is started;
  `fetch_start_and_last_commit`: what begins with a partition's assignment, and what ends with its revocation, with the
  last commit before another member gets it; `on_assign_choice`: what the program chose in `on_assign`;
  `manual_assignment`: partitions that it assigns itself.
* `rebalance_events`: the queue of rebalances for the thread that polls; `program_callbacks`: the program's functions
  that are called for them.
* `fetching`: fetches records of owned partitions only; `read_partitions`: these partitions, and the place in each at
  which the program is; `first_leaders`: asks for their leaders at once; `read_ahead`: records that `poll` returns next;
  `records_in_hand`: those on their way to the program; `poll_interval`: whether the program polls;
  `positions_before_call`: the positions of partitions before a call whose records a signal drops.
* `client_callbacks`: the callbacks of the configuration, as `error_cb`; `group_statistics`: the part of the group in a
  report of `stats_cb`.
* `received_bytes`: what was received, from librdkafka's statistics.
* `consumed_offsets`: the progress of the program.
* `logical_offsets`: the offsets at which a partition may begin; `resolved_starts`: what a broker says where they are;
  `stored_offsets`: the offsets to commit after a seek.
* `commit_queue`: Kafka commits in the order of their calls; `known_group_offsets`: what is known of its
  group's offsets.
* `interruptions`: work that a signal cannot leave half done; `background_calls`: calls of code with locks in Python;
  `leaving`: the end of a member.
* `one_thread_at_a_time`: one call at a time, in one process; `one_process`: the child that a callback forks.
* `dropped_or_forked`: consumers that are dropped, or copied by a fork.
* `consumer_errors`: errors that are `MembershipError` and `KafkaException`.
"""
