"""What all forms of chaos share: agents on a cluster, faults drawn by a seed, and the verdict at the end."""

import contextlib
import json
import os
import random
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import pytest
from confluent_kafka import Consumer, TopicPartition

from spark_sink.demo.cluster import Cluster
from spark_sink.ranges.batch_offset import TopicPartition as Key
from tests.integration.spark_sink.chaos.agents import PARTS, Agent, send
from tests.integration.spark_sink.chaos.draws import SECONDS, Factors, Variant, variant
from tests.integration.spark_sink.chaos.lakes import DeltaLake, Lake, unlocked
from tests.integration.spark_sink.chaos.stream import Stream, Values
from tests.integration.spark_sink.chaos.verdict import Verdict, judge

PATIENCE_S = float(os.environ.get("AZIMUTH_CHAOS_PATIENCE", "180"))
FAULTS = os.environ.get("AZIMUTH_CHAOS_FAULTS")
SESSION_S = 6.0
_BROKER_SESSION_S = 9.0
BROKER_FAULTS = ("kill broker", "kill controller", "stop broker")


class Torment(ABC):
    """One form of chaos: what it starts, and which faults it knows.

    Args:
        cluster: three brokers.
        root: a folder of its own.
        topics: names, with three replicas.
        partitions: of each topic.
        seed: draws the variant, the values and the faults.
    """

    form: ClassVar[str]
    faults: ClassVar[Sequence[str]]
    factors: ClassVar[Factors] = {}
    kind: ClassVar[type[Lake]] = DeltaLake

    def __init__(self, cluster: Cluster, root: Path, topics: Sequence[str], partitions: int, seed: int) -> None:
        self.cluster, self.root, self.topics, self.partitions, self.seed = cluster, root, topics, partitions, seed
        self.random = random.Random(seed)
        self.variant: Variant = variant(self.factors, seed) if self.factors else {}
        self.lake = self.kind(root / "lake")
        self.agents = self.make_agents()
        self.away: set[str] = set()
        self.events: list[str] = []
        self._began = time.monotonic()

    @abstractmethod
    def make_agents(self) -> list[Agent]:
        """The processes, not started."""

    @abstractmethod
    def positions(self) -> Mapping[Key, int]:
        """How far the tables have come."""

    def values(self) -> Values:
        """What is produced."""
        return Values()

    def fault(self, kind: str) -> None:
        """Do a fault that only this form knows."""
        raise NotImplementedError(kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self.agents:
            agent.end()

    def run(self) -> Verdict:
        """Let faults happen for SECONDS while records come in, at least one each ten; wait for the last; judge."""
        self.say(f"seed {self.seed}, {SECONDS:g} s, {self.variant}")
        stream = Stream(self.cluster.bootstrap_servers, self.topics, self.partitions, self.values(), self.seed)
        with stream:
            self.until(self.ready, "a commit of each agent")
            kinds: list[str] = []
            faults = FAULTS.split(",") if FAULTS else self.known_faults()
            began = time.monotonic()
            # A slow machine recovers slowly, and would meet few faults in that time.
            while time.monotonic() - began < SECONDS or len(self.events) < SECONDS / 10:
                kinds = kinds or self.random.sample(faults, len(faults))
                self._strike(kinds.pop())
                stream.change()
                struck = time.monotonic()
                self.wait_for_commits()
                self.say(f"every partition moved within {time.monotonic() - struck:.1f} s")
        expected = self.watermarks()
        self.until(lambda: self.positions() == expected, "the end of every partition")
        self.end()
        found = judge(self.lake.root, stream.ledger(), coupons=self.variant.get("unknown") != "ignore")
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(Counter(self.events).items()))
        self.say(f"seed {self.seed} done: {found}; {counts}")
        return found

    def end(self) -> None:
        """End the agents as an operator would, so that what they write last is there."""
        for agent in self.agents:
            send(agent.part("driver"), signal.SIGTERM)
        for agent in self.agents:
            if agent.process is not None:
                agent.process.wait(PATIENCE_S)

    def ready(self) -> bool:
        """Each agent has committed, and each partition has begun."""
        return self.lake.committers() >= {one.name for one in self.agents} and self.positions().keys() >= set(
            self.keys()
        )

    def keys(self) -> list[Key]:
        """Every partition."""
        return [Key(topic, partition) for topic in self.topics for partition in range(self.partitions)]

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; an agent that has ended is started again meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            for agent in self.agents:
                agent.tree()
                if not agent.alive and agent.name not in self.away:
                    agent.start()
            if time.monotonic() >= deadline:
                ends = {one.name: one.log.read_text(errors="replace")[-1500:] for one in self.agents}
                pytest.fail(f"{what} did not happen within {PATIENCE_S:g} s after {self.events}; {ends}")
            time.sleep(0.1)

    def wait_for_commits(self, of: Callable[[Iterable[bool]], bool] = all) -> None:
        """A fault must hit a working group: every partition moves on."""
        before = self.positions()

        def moved() -> bool:
            now = self.positions()
            return of(now.get(key, 0) > before.get(key, 0) for key in self.keys())

        self.until(moved, f"progress of {of.__name__} partitions")

    def databases(self) -> Sequence[Path]:
        """SQLite databases of the agents: each has one lock for all writers."""
        return self.lake.databases()

    def watermarks(self) -> dict[Key, int]:
        """Where every partition ends in Kafka."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "watermarks"})
        found = {key: consumer.get_watermark_offsets(TopicPartition(*key), timeout=20)[1] for key in self.keys()}
        consumer.close()
        return found

    def say(self, text: str) -> None:
        """Print one line."""
        sys.stdout.write(f"chaos {self.form}: {time.monotonic() - self._began:5.1f} s  {text}\n")
        sys.stdout.flush()

    def known_faults(self) -> Sequence[str]:
        """The faults that mean something to this variant."""
        return self.faults

    def _strike(self, kind: str) -> None:
        victim = self.random.choice(self.agents)
        verb, part = kind.split()
        self.events.append(kind)
        self.say(kind if kind in BROKER_FAULTS else f"{kind} {victim.name}")
        if kind in BROKER_FAULTS:
            self._hit_broker(verb, part)
        elif verb == "lose":
            # The others take over before it comes back.
            self.away.add(victim.name)
            send(victim.part(part), signal.SIGKILL)
            self.wait_for_commits()
            self.away.remove(victim.name)
        elif verb in {"kill", "term"} and part in PARTS:  # of an agent that only just starts there may be none yet
            send(victim.part(part), signal.SIGKILL if verb == "kill" else signal.SIGTERM)
        elif verb == "stop":
            self.stop(victim, part)
        else:
            self.fault(kind)

    def stop(self, victim: Agent, part: str) -> None:
        """SIGSTOP; a process that holds a membership resumes only after others have committed its partitions.

        A process that holds the lock of a database runs on until it does not: with it, all others would wait for it.
        """
        stopped = victim.part(part)
        send(stopped, signal.SIGSTOP)
        while not all(map(unlocked, self.databases())):
            send(stopped, signal.SIGCONT)
            send(stopped, signal.SIGSTOP)
        try:
            self.wait_for_commits() if part in {"agent", "jvm"} else time.sleep(SESSION_S + 2)
        finally:
            send(stopped, signal.SIGCONT)

    def _hit_broker(self, verb: str, part: str) -> None:
        number = self._controller() if part == "controller" else self.random.choice(self.cluster.brokers).id
        self.cluster.kill(number, signal.SIGKILL if verb == "kill" else signal.SIGSTOP)
        try:
            if verb == "kill":
                # A partition whose replicas were not all in sync may have to wait for its broker.
                self.wait_for_commits(of=any)
            else:
                time.sleep(_BROKER_SESSION_S + 3)
        finally:
            if verb == "kill":
                self.cluster.start(number, timeout_s=PATIENCE_S)
            else:
                self.cluster.kill(number, signal.SIGCONT)
        self.say(f"broker {number} is back")

    def _controller(self) -> int:
        """The leader of the quorum, by the newest epoch that a broker has on disk."""
        found = []
        for broker in self.cluster.brokers:
            with contextlib.suppress(OSError, ValueError):
                file = self.cluster.directory / f"data-{broker.id}" / "__cluster_metadata-0" / "quorum-state"
                state = json.loads(file.read_text())
                found.append((int(state["leaderEpoch"]), int(state["leaderId"])))
        return max([number for number in found if number[1] > 0], default=(0, self.cluster.brokers[0].id))[1]
