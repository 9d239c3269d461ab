"""Fleets: agents over many clusters, each topic on a few of them.

* `fleet_topic`: the identity of a topic, `<cluster id>/<topic id>`.
* `agents_view`: the agents in the fleet.
* `agents_per_topic`: the number of agents per topic, from several settings.
* `agreed_workers`: the numbers that all agents compute with while they change.
* `bounded_seats`: places topics on agents by rank, no agent above its bound.
* `topic_placement`: which agents read which topics, a pure function.
* `partition_shares`: even shares of a topic's partitions among its agents.
* `drifted_settings`: settings that all agents must share, and their differences.
* `unreached_clusters`: clusters that an agent cannot reach, so that others read their topics.
* `topic_zones`: a placement near the replicas of a topic.
* `explanation`: why an agent reads a topic, and which agent is next.
* `lanes`: topics of a cluster on few consumers.
* `membership_contract`: the contract of static, Redis and Kafka membership.
* `kafka_membership`: membership by the group protocol of a home cluster.
* `redis_membership`: membership by keys with a time to live.
* `source`: a cluster, and which of its topics are read.
* `topic_descriptions`: a cluster's metadata of these topics.
* `cluster_topics`: a thread that refreshes a cluster's topics.
* `hand_over`: topics that go to another agent are read until that agent has started.
* `agent_loop`: the agent's loop: view, topics, placement.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.fleet.agent_loop import AgentParts, FleetAgent, Ingestion
    from assignors.fleet.agents_per_topic import FleetWorkers, Override
    from assignors.fleet.agents_view import Agent, View
    from assignors.fleet.agreed_workers import KnownWorkers, status_drift
    from assignors.fleet.cluster_topics import ClusterWatch, any_answers
    from assignors.fleet.drifted_settings import declared_settings, settings_drift
    from assignors.fleet.explanation import Line, Place, explain
    from assignors.fleet.fleet_topic import FleetTopic, once_each
    from assignors.fleet.kafka_membership import KafkaMembers
    from assignors.fleet.lanes import Lane, LaneChange, Lanes, lane_change
    from assignors.fleet.membership_contract import Members, Membership, Session, Standing, StaticMembers, Witness
    from assignors.fleet.partition_shares import PRESENT_DIVISION
    from assignors.fleet.redis_membership import RedisMembers
    from assignors.fleet.source import Source
    from assignors.fleet.topic_descriptions import Sighting, ask_ids, sight
    from assignors.fleet.topic_placement import Balance, BalanceBy, Decision, decide
    from assignors.fleet.topic_zones import agreed_zones, with_zones

__all__ = [
    "PRESENT_DIVISION",
    "Agent",
    "AgentParts",
    "Balance",
    "BalanceBy",
    "ClusterWatch",
    "Decision",
    "FleetAgent",
    "FleetTopic",
    "FleetWorkers",
    "Ingestion",
    "KafkaMembers",
    "KnownWorkers",
    "Lane",
    "LaneChange",
    "Lanes",
    "Line",
    "Members",
    "Membership",
    "Override",
    "Place",
    "RedisMembers",
    "Session",
    "Sighting",
    "Source",
    "Standing",
    "StaticMembers",
    "View",
    "Witness",
    "agreed_zones",
    "any_answers",
    "ask_ids",
    "decide",
    "declared_settings",
    "explain",
    "lane_change",
    "once_each",
    "settings_drift",
    "sight",
    "status_drift",
    "with_zones",
]

_MODULES = {
    "Agent": "agents_view",
    "AgentParts": "agent_loop",
    "Balance": "topic_placement",
    "BalanceBy": "topic_placement",
    "ClusterWatch": "cluster_topics",
    "Decision": "topic_placement",
    "FleetAgent": "agent_loop",
    "FleetTopic": "fleet_topic",
    "FleetWorkers": "agents_per_topic",
    "Ingestion": "agent_loop",
    "KafkaMembers": "kafka_membership",
    "KnownWorkers": "agreed_workers",
    "Lane": "lanes",
    "LaneChange": "lanes",
    "Lanes": "lanes",
    "Line": "explanation",
    "Members": "membership_contract",
    "Membership": "membership_contract",
    "Override": "agents_per_topic",
    "PRESENT_DIVISION": "partition_shares",
    "Place": "explanation",
    "RedisMembers": "redis_membership",
    "Session": "membership_contract",
    "Sighting": "topic_descriptions",
    "Source": "source",
    "Standing": "membership_contract",
    "StaticMembers": "membership_contract",
    "View": "agents_view",
    "Witness": "membership_contract",
    "agreed_zones": "topic_zones",
    "any_answers": "cluster_topics",
    "ask_ids": "topic_descriptions",
    "decide": "topic_placement",
    "declared_settings": "drifted_settings",
    "explain": "explanation",
    "lane_change": "lanes",
    "once_each": "fleet_topic",
    "settings_drift": "drifted_settings",
    "status_drift": "agreed_workers",
    "sight": "topic_descriptions",
    "with_zones": "topic_zones",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
