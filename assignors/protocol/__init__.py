"""The assignors inside kafka-python's group protocol.

* `kafka_python_assignors`: `HRWAssignor` and `ShuffledRoundRobinAssignor`.
* `base_assignor`: their common base class.
* `served_consumer`: what an assignor knows of its consumer.
* `join_subscription`: the data that a member sends to the leader (version 3).
* `cluster_metadata`: reads topics from kafka-python's metadata.
* `fallback_plan`: a simple plan, used if the planner fails.
* `worker_caps_source`: workers per topic from a function or a file.
* `topic_weights_source`: volumes of topics from a mapping or a function.
* `rebalance_trigger`: requests a rebalance when these workers change.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.protocol.worker_caps_source import WorkersSetting
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "worker_caps_source": ["WorkersSetting"],
        },
    )

__all__ = [
    "WorkersSetting",
]
