"""The assignors inside kafka-python's group protocol: its subscriptions in, its assignment out.

* `kafka_python_assignors`: `HRWAssignor` and `ShuffledRoundRobinAssignor`.
* `base_assignor`: what they share.
* `subscription`: what a member sends to the leader (version 3).
* `cluster_metadata`: topics as kafka-python knows them.
* `fallback_plan`: the plan where the planner failed.
* `worker_caps_source`: workers per topic from a function or a file.
* `rebalance_trigger`: asks for a rebalance when those change.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.protocol.worker_caps_source import WorkersSetting

__all__ = [
    "WorkersSetting",
]

_MODULES = {
    "WorkersSetting": "worker_caps_source",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
