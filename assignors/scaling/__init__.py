"""Computes the number of workers of a topic, with a reason, from its lag.

* `observation`: offsets by partition and time; unknown is a separate state.
* `lag`: lag in records and in seconds.
* `stalled_lag`: partitions whose lag no number of workers changes.
* `policy_contract`: the input and the output of a policy.
* `capacity_policy`: the default policy, from a worker's measured rate and the deadline of the records.
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
* `workers_records`: the compacted topic with the numbers: its format.
* `workers_topic_client`: reading and writing that topic.
* `workers_news`: news of that topic by Redis.
* `poll_settings`: the published settings of a worker's polls.
"""

import typing

from assignors import lazy

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
    from assignors.scaling.capacity_policy import Capacity
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
    from assignors.scaling.workers_news import NewsListener, WorkersNews
    from assignors.scaling.workers_of_topic import Decision, Scaler, decide
    from assignors.scaling.workers_records import ScaledTopic, WorkersRecord
    from assignors.scaling.workers_topic_client import WorkersFeed, WorkersPublisher

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

_MODULES = {
    "AgentsNeeded": "agents_of_group",
    "AgentsSettings": "agents_of_group",
    "Bounds": "recommendation_limits",
    "Capacity": "capacity_policy",
    "Confirmed": "recommendation_limits",
    "CoolDown": "recommendation_limits",
    "DS2": "baseline_policies",
    "Decision": "workers_of_topic",
    "Demand": "agents_of_group",
    "DownWindow": "recommendation_limits",
    "Evaluator": "evaluator",
    "EvaluatorElection": "evaluator_election",
    "GateSettings": "stalled_lag",
    "KafkaLag": "kafka_lag",
    "Keda": "baseline_policies",
    "Limit": "recommendation_limits",
    "MemoryStore": "state_store",
    "NEVER": "observation",
    "NewsListener": "workers_news",
    "Numaflow": "baseline_policies",
    "Observation": "observation",
    "POLICIES": "pipelines",
    "PartitionState": "stalled_lag",
    "Pipeline": "pipelines",
    "Policy": "policy_contract",
    "PollSettings": "poll_settings",
    "Proposal": "policy_contract",
    "RedisStore": "state_store",
    "ScaledTopic": "workers_records",
    "Scaler": "workers_of_topic",
    "ScalingSettings": "evaluator_settings",
    "State": "policy_contract",
    "Static": "baseline_policies",
    "Step": "recommendation_limits",
    "Store": "state_store",
    "Thresholds": "threshold_policy",
    "UNKNOWN": "observation",
    "UsablePartitions": "recommendation_limits",
    "View": "stalled_lag",
    "Window": "observation",
    "WorkersFeed": "workers_topic_client",
    "WorkersNews": "workers_news",
    "WorkersPublisher": "workers_topic_client",
    "WorkersRecord": "workers_records",
    "abbreviated": "stalled_lag",
    "agents_needed": "agents_of_group",
    "alert_hooks": "alerts",
    "decide": "workers_of_topic",
    "demand": "agents_of_group",
    "explain_entry": "decision_journal",
    "journal_entries": "decision_journal",
    "measured_agent_rate": "agents_of_group",
    "narrowest": "poll_settings",
    "published_polls": "poll_settings",
    "window": "observation",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
