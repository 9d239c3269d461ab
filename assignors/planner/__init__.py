"""The planner: computes an owner for each partition from topics, members and claims. Pure: no I/O, no Kafka client.

* `assign_partitions`: `plan()` assigns partitions to members, step by step.
* `topics_and_members`: `Topic` and `Member`, the input.
* `plan_result`: `Plan`, the result.
* `explanation`: explains why a member reads a topic or not.
* `input_arrays`: the input as arrays, with checked claims; `plan_request`: these arrays and the settings of one plan.
* `worker_caps`: workers per topic: how many members may read it.
* `topic_volumes`, `owners_by_volume`: volumes of topics, and plans that balance them.
* `pinned_topics`: topics that a person gives to members.
* `member_hosts`: finds the host in a member's identity.
* `rack_locality`: which partitions are local to which members.
* `member_ranking`: ranks the members for each topic.
* `load_bounds`: the smallest and largest number of partitions of each member.
* `kept_claims`: decides which partitions stay with their owner.
* `place_unowned`: places partitions without an owner.
* `plan_loops`: the loops that take most of a plan's time: `plan_loops_compiled` in C if there was a compiler at the
  build, `plan_loops_interpreted` in numpy if not.
* `balance`: different subscriptions, racks and large groups.
* `capped`: topics that only a limited number of members may read.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.planner.worker_caps import Workers
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "worker_caps": ["Workers"],
        },
    )

__all__ = [
    "Workers",
]
