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
* `static_membership`: membership from the configuration.
* `server_membership`: what the memberships with a server share.
* `kafka_membership`: membership by the group protocol of a home cluster.
* `redis_membership`: membership by keys with a time to live.
* `fleet_source`: a cluster, and which of its topics are read.
* `topic_descriptions`: a cluster's metadata of these topics.
* `cluster_topics`: a thread that refreshes a cluster's topics.
* `hand_over`: topics that go to another agent are read until that agent has started.
* `agent_parts`: what the loop needs; the contract of an ingestion.
* `agent_loop`: the agent's loop: view, topics, placement.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.fleet.agent_loop import FleetAgent
    from assignors.fleet.agent_parts import AgentParts, Ingestion
    from assignors.fleet.agents_per_topic import FleetWorkers, Override
    from assignors.fleet.agents_view import Agent, View
    from assignors.fleet.agreed_workers import KnownWorkers, status_drift
    from assignors.fleet.cluster_topics import ClusterWatch, any_answers
    from assignors.fleet.drifted_settings import declared_settings, settings_drift
    from assignors.fleet.explanation import Line, Place, explain
    from assignors.fleet.fleet_source import Source
    from assignors.fleet.fleet_topic import FleetTopic, once_each
    from assignors.fleet.kafka_membership import KafkaMembers
    from assignors.fleet.lanes import Lane, LaneChange, Lanes, lane_change
    from assignors.fleet.membership_contract import Members, Membership, Session, Standing, Witness
    from assignors.fleet.partition_shares import PRESENT_DIVISION
    from assignors.fleet.redis_membership import RedisMembers
    from assignors.fleet.static_membership import StaticMembers
    from assignors.fleet.topic_descriptions import Sighting, ask_ids, sight
    from assignors.fleet.topic_placement import Balance, BalanceBy, Decision, decide
    from assignors.fleet.topic_zones import agreed_zones, with_zones
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "agent_loop": ["FleetAgent"],
            "agent_parts": ["AgentParts", "Ingestion"],
            "agents_per_topic": ["FleetWorkers", "Override"],
            "agents_view": ["Agent", "View"],
            "agreed_workers": ["KnownWorkers", "status_drift"],
            "cluster_topics": ["ClusterWatch", "any_answers"],
            "drifted_settings": ["declared_settings", "settings_drift"],
            "explanation": ["Line", "Place", "explain"],
            "fleet_topic": ["FleetTopic", "once_each"],
            "kafka_membership": ["KafkaMembers"],
            "lanes": ["Lane", "LaneChange", "Lanes", "lane_change"],
            "membership_contract": ["Members", "Membership", "Session", "Standing", "Witness"],
            "partition_shares": ["PRESENT_DIVISION"],
            "redis_membership": ["RedisMembers"],
            "fleet_source": ["Source"],
            "static_membership": ["StaticMembers"],
            "topic_descriptions": ["Sighting", "ask_ids", "sight"],
            "topic_placement": ["Balance", "BalanceBy", "Decision", "decide"],
            "topic_zones": ["agreed_zones", "with_zones"],
        },
    )

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
