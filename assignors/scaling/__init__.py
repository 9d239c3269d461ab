"""Computes the number of workers of a topic, with a reason, from its lag.

* `observation`: offsets by partition and time; unknown is a separate state.
* `lag`: lag in records and in seconds.
* `stalled_lag`: partitions whose lag no number of workers changes.
* `policy_contract`: the input and the output of a policy.
* `workers_from_lag_policy`: the default policy, from a worker's measured rate and the deadline of the records.
* `baseline_policies`: published rules of other systems.
* `threshold_policy`: the published rule of thresholds, whose steps retention scales.
* `topic_rates`: rates of arrivals that are published as weights of topics.
* `retention`: workers that prevent the deletion of unread records.
* `recommendation_limits`: bounds, steps and pauses after a policy; a window holds the largest number wanted lately.
* `workers_of_topic`: combines gate, policy and limits into one pure decision.
* `agents_of_group`: combines the decisions of a group into its number of agents, pure.
* `pipelines`: policies and limits by name.
* `evaluator_settings`: the TOML file of the evaluator.
* `evaluator`: observe, decide, record, publish.
* `evaluator_election`: which of several evaluators publishes.
* `kafka_lag`: the lag of all topics in a few requests.
* `state_store`: windows and states in memory or in Redis.
* `alerts`: log, webhook and Redis hooks.
* `decision_journal`: decisions as JSON lines.
* `workers_records`: the format of the compacted topic with the numbers.
* `workers_topic_client`: reading and writing that topic.
* `workers_news`: news of that topic by Redis.
* `poll_settings`: the published settings of a worker's polls.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.scaling.agents_of_group import (
        AgentsNeeded,
        AgentsSettings,
        Demand,
        agents_needed,
        demand,
        measured_agent_rate,
    )
    from assignors.scaling.alerts import alert_hooks
    from assignors.scaling.baseline_policies import DS2, Keda, Numaflow, Static
    from assignors.scaling.decision_journal import explain_entry, journal_entries
    from assignors.scaling.evaluator import Evaluator
    from assignors.scaling.evaluator_election import EvaluatorElection
    from assignors.scaling.evaluator_settings import ScalingSettings
    from assignors.scaling.kafka_lag import KafkaLag
    from assignors.scaling.observation import NEVER, UNKNOWN, Observation, Window, window
    from assignors.scaling.pipelines import POLICIES, Pipeline
    from assignors.scaling.policy_contract import Policy, Proposal, State
    from assignors.scaling.poll_settings import PollSettings, narrowest, published_polls
    from assignors.scaling.recommendation_limits import (
        Bounds,
        Confirmed,
        CoolDown,
        DownWindow,
        Limit,
        Step,
        UsablePartitions,
    )
    from assignors.scaling.stalled_lag import GateSettings, PartitionState, View, abbreviated
    from assignors.scaling.state_store import MemoryStore, RedisStore, Store
    from assignors.scaling.threshold_policy import Thresholds
    from assignors.scaling.workers_from_lag_policy import Capacity
    from assignors.scaling.workers_news import NewsListener, WorkersNews
    from assignors.scaling.workers_of_topic import Decision, Scaler, decide
    from assignors.scaling.workers_records import ScaledTopic, WorkersRecord
    from assignors.scaling.workers_topic_client import WorkersFeed, WorkersPublisher
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "agents_of_group": [
                "AgentsNeeded",
                "AgentsSettings",
                "Demand",
                "agents_needed",
                "demand",
                "measured_agent_rate",
            ],
            "alerts": ["alert_hooks"],
            "baseline_policies": ["DS2", "Keda", "Numaflow", "Static"],
            "workers_from_lag_policy": ["Capacity"],
            "decision_journal": ["explain_entry", "journal_entries"],
            "evaluator": ["Evaluator"],
            "evaluator_election": ["EvaluatorElection"],
            "evaluator_settings": ["ScalingSettings"],
            "kafka_lag": ["KafkaLag"],
            "observation": ["NEVER", "UNKNOWN", "Observation", "Window", "window"],
            "pipelines": ["POLICIES", "Pipeline"],
            "policy_contract": ["Policy", "Proposal", "State"],
            "poll_settings": ["PollSettings", "narrowest", "published_polls"],
            "recommendation_limits": [
                "Bounds",
                "Confirmed",
                "CoolDown",
                "DownWindow",
                "Limit",
                "Step",
                "UsablePartitions",
            ],
            "stalled_lag": ["GateSettings", "PartitionState", "View", "abbreviated"],
            "state_store": ["MemoryStore", "RedisStore", "Store"],
            "threshold_policy": ["Thresholds"],
            "workers_news": ["NewsListener", "WorkersNews"],
            "workers_of_topic": ["Decision", "Scaler", "decide"],
            "workers_records": ["ScaledTopic", "WorkersRecord"],
            "workers_topic_client": ["WorkersFeed", "WorkersPublisher"],
        },
    )

__all__ = [
    "DS2",
    "NEVER",
    "POLICIES",
    "UNKNOWN",
    "AgentsNeeded",
    "AgentsSettings",
    "Bounds",
    "Capacity",
    "Confirmed",
    "CoolDown",
    "Decision",
    "Demand",
    "DownWindow",
    "Evaluator",
    "EvaluatorElection",
    "GateSettings",
    "KafkaLag",
    "Keda",
    "Limit",
    "MemoryStore",
    "NewsListener",
    "Numaflow",
    "Observation",
    "PartitionState",
    "Pipeline",
    "Policy",
    "PollSettings",
    "Proposal",
    "RedisStore",
    "ScaledTopic",
    "Scaler",
    "ScalingSettings",
    "State",
    "Static",
    "Step",
    "Store",
    "Thresholds",
    "UsablePartitions",
    "View",
    "Window",
    "WorkersFeed",
    "WorkersNews",
    "WorkersPublisher",
    "WorkersRecord",
    "abbreviated",
    "agents_needed",
    "alert_hooks",
    "decide",
    "demand",
    "explain_entry",
    "journal_entries",
    "measured_agent_rate",
    "narrowest",
    "published_polls",
    "window",
]
