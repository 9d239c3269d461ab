"""The planner: topics, members and claims in, an owner for each partition out. Pure: no I/O, no Kafka client.

* `plan`: `plan()`: where a partition is given to a member, step by step.
* `topics_and_members`: `Topic` and `Member`, the input.
* `plan_request`: the input as arrays, with the settings.
* `plan_result`: `Plan`, the answer.
* `explanation`: why a member reads a topic or does not.
* `input_arrays`: the input as arrays, claims checked.
* `worker_caps`: workers per topic: how many members may read it.
* `member_hosts`: the host in a member's identity.
* `rack_locality`: which partitions are local to which members.
* `member_ranking`: which member a topic prefers.
* `load_bounds`: how many partitions each member may hold.
* `kept_claims`: which members keep what they own.
* `place_unowned`: which member gets a partition without an owner.
* `balance`: different subscriptions, racks and large groups.
* `capped`: topics that only a few members may read.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.planner.worker_caps import Workers

__all__ = [
    "Workers",
]

_MODULES = {
    "Workers": "worker_caps",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
