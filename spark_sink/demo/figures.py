"""The figures of a report, from the records of a run."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_sink.demo.busy_seconds import busy_rate
from spark_sink.demo.cluster import KAFKA_VERSION
from spark_sink.demo.ingestion import Ingestion
from spark_sink.demo.producing import Shipment
from spark_sink.demo.takeover_parts import takeover_parts
from spark_sink.demo.timeline import Commit, Ownership, lag_over_time, read_ownership
from spark_sink.ranges.batch_offset import TopicPartition

_LIBRARIES = ("kafka-azimuth", "pyspark", "kafka-python", "confluent-kafka", "deltalake", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The partitions that moved after the death of an agent.

    Attributes:
        owned: partitions that the dead agent owned.
        moved: partitions that changed their owner until all had an owner again.
    """

    owned: int
    moved: int


def moves_on_kill(ownership: Iterable[Ownership], *, dead: str, at: float, until: float) -> Moves:
    """Compare the owners just before a death with the owners when another agent has taken over.

    Args:
        ownership: of all agents.
        dead: the killed agent.
        at: time of its death, unix seconds.
        until: time of the takeover, before the next agent joins.
    """
    changes = sorted(ownership, key=lambda o: o.time)
    before = _owners(c for c in changes if c.time <= at)
    after = _owners(c for c in changes if c.time < until and c.agent != dead)
    moved = sum(1 for partition, owner in before.items() if after.get(partition) != owner)
    return Moves(owned=sum(owner == dead for owner in before.values()), moved=moved)


def _owners(changes: Iterable[Ownership]) -> dict[TopicPartition, str]:
    held: dict[str, frozenset[TopicPartition]] = {}
    for change in changes:
        held[change.agent] = change.partitions
    return {partition: agent for agent, partitions in held.items() for partition in partitions}


def freshness_p95(table: Path, commits: Iterable[Commit], since: float) -> float | None:
    """Return the 95th percentile of the seconds from timestamp to commit, over records produced after `since`."""
    waits = []
    for commit in commits:
        for name in commit.files:
            times = pq.read_table(table / name, columns=["timestamp"]).column(0)
            produced = pc.divide(pc.cast(times.cast(pa.timestamp("us", "UTC")), pa.int64()).cast(pa.float64()), 1e6)
            live = produced.filter(pc.greater_equal(produced, since))
            waits.append(pc.subtract(pa.scalar(commit.time), live))
    chunks = [chunk for wait in waits for chunk in wait.chunks if len(chunk)]
    if not chunks:
        return None
    return float(pc.quantile(pa.chunked_array(chunks), q=0.95)[0].as_py())


def peer_loads(topics: Mapping[str, int], agents: Sequence[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Return partitions and topics per agent, as kafka-python's own range and round robin assignors assign them.

    Returns:
        `{"range" | "round_robin": {"partitions" | "topics": {agent: n}}}`.
    """
    from assignors import Member, Topic  # noqa: PLC0415 - numpy is not needed to read this module
    from assignors.comparison import stock_plan  # noqa: PLC0415 - nor is kafka-python

    members = [Member(agent, frozenset(topics)) for agent in agents]
    counted = [Topic(name, partitions) for name, partitions in topics.items()]
    found: dict[str, dict[str, dict[str, int]]] = {}
    for strategy in ("range", "round robin"):
        plan = stock_plan(strategy, counted, members)
        found[strategy.replace(" ", "_")] = {
            "partitions": {a: len(ps) for a, ps in plan.items()},
            "topics": {a: len({t for t, _ in ps}) for a, ps in plan.items()},
        }
    return found


def timeline(run: Ingestion, ownership: Sequence[Ownership]) -> dict[str, Any]:
    """Return the data of the pictures over time; t is in seconds since the start of the agents."""
    began = run.began
    partitions = sorted({p for o in ownership for p in o.partitions})
    index = {partition: i for i, partition in enumerate(partitions)}
    return {
        "partitions": [list(p) for p in partitions],
        "events": [
            {"t": round(e.time - began, 2), "kind": e.kind, "agent": e.agent, "text": e.text}
            for e in sorted(run.events, key=lambda e: e.time)
        ],
        "ownership": [
            {
                "t": round(o.time - began, 2),
                "agent": o.agent,
                "generation": o.generation,
                "partitions": sorted(index[p] for p in o.partitions),
            }
            for o in sorted(ownership, key=lambda o: o.time)
        ],
        "lag": [{"t": round(t - began, 2), "records": n} for t, n in lag_over_time(run.log.commits, run.produced)],
        "commits": [{"t": round(c.time - began, 2), "agent": c.agent, "rows": c.rows} for c in run.log.commits],
    }


def figures(
    run: Ingestion, *, az_aware: Shipment, default: Shipment, seconds: Mapping[str, float], cores: int
) -> dict[str, Any]:
    """Return the report without the verification's keys: rows, duplicates, missing, values_differ.

    Raises:
        ValueError: the run has no kill or no takeover.
    """
    if run.kill is None or run.takeover is None:
        raise ValueError("the run has not been through a kill and a takeover")
    ownership = [o for agent in run.agents for o in read_ownership(run.telemetry(agent))]
    moves = moves_on_kill(ownership, dead=run.kill.agent, at=run.kill.time, until=run.takeover.time)
    before = _owners(o for o in sorted(ownership, key=lambda o: o.time) if o.time <= run.kill.time)
    agents = sorted(set(before.values()))
    topics = {t: 1 + max(p for u, p in before if u == t) for t, _ in before}
    peers = peer_loads(topics, agents)
    freshness = freshness_p95(run.log.table, run.log.commits, run.live_since)
    return {
        "expected_rows": run.flights.num_rows,
        "agents_killed": 1,
        "killed": {"agent": run.kill.agent, "part": run.settings.kill.value, "processes": run.kill.processes},
        "takeover_seconds": round(run.takeover.time - run.kill.time, 2),
        "takeover_parts": takeover_parts(
            (one for one in ownership if one.agent != run.kill.agent),
            run.kill.owned,
            killed=run.kill.time,
            session_end=run.session.ended if run.session else None,
            commit=run.takeover.time,
        ),
        "partitions_moved_on_kill": moves.moved,
        "partitions_owned_by_killed": moves.owned,
        "cross_zone_share": {
            "default": round(default.cross_zone_share, 4),
            "az_aware": round(az_aware.cross_zone_share, 4),
        },
        "default_sample_share": round(default.records / az_aware.records, 4),
        "bytes_by_zone": {"default": default.bytes_by_zone, "az_aware": az_aware.bytes_by_zone},
        "price_per_gb": 0.01,
        "produced_bytes": az_aware.bytes,
        "produced_records": az_aware.records,
        **_rates(run, ownership, cores),
        "freshness_p95_seconds": None if freshness is None else round(freshness, 2),
        "connections": {
            "per_agent": run.connections,
            "range": sum(peers["range"]["topics"].values()),
            "round_robin": sum(peers["round_robin"]["topics"].values()),
            "hrw": len({(agent, topic) for (topic, _), agent in before.items()}),
            "how": (
                "per_agent: TCP connections to brokers, counted at the agents' open sockets. range, round_robin, hrw: "
                f"pairs of agent and topic with {len(agents)} agents; hrw as the agents held them before the kill, the "
                "others computed by kafka-python's own assignors"
            ),
        },
        "partitions_per_agent": {
            "hrw": {a: sum(owner == a for owner in before.values()) for a in agents},
            **{name: loads["partitions"] for name, loads in peers.items()},
        },
        "topics_per_agent": {
            "hrw": {a: len({t for (t, _), owner in before.items() if owner == a}) for a in agents},
            **{name: loads["topics"] for name, loads in peers.items()},
        },
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "versions": _versions(),
        "cores": cores,
        "timeline": timeline(run, ownership),
    }


def _rates(run: Ingestion, ownership: Sequence[Ownership], cores: int) -> dict[str, float | None]:
    rate = busy_rate(run.log.commits, ownership, began=run.began, arriving=run.settings.live_rate)
    if rate is None:
        return {
            "records_per_second": None,
            "records_per_core_second": None,
            "busy_seconds": None,
            "start_seconds": None,
        }
    return {
        "records_per_second": round(rate.records / rate.busy_s),
        "records_per_core_second": round(rate.records / rate.busy_s / cores),
        "busy_seconds": round(rate.busy_s, 1),
        "start_seconds": round(rate.start_s, 1),
    }


def _versions() -> dict[str, str]:
    found = {name: version(name) for name in _LIBRARIES}
    return {"python": platform.python_version(), "kafka": KAFKA_VERSION, **found}
