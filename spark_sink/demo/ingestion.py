"""Runs the ingestion: agents ingest, one is killed, another takes over, a third joins, and no record is lost."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from confluent_kafka.admin import AdminClient

from spark_sink.demo.agents import AgentProcess
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.producing import Loader
from spark_sink.demo.settings import DemoSettings, agent_config
from spark_sink.demo.takeover_parts import SessionWatch
from spark_sink.demo.timeline import Commit, CommitLog, Event, find_takeover, read_ownership
from spark_sink.errors import DemoError
from spark_sink.ranges.batch_offset import TopicPartition

_TICK_S = 0.2
_STOP_S = 20.0
_FIRST, _SECOND, _THIRD = "agent-1", "agent-2", "agent-3"
_SLACK = 6_000  # records held back, so that the third agent always has records to read


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The death of an agent."""

    agent: str
    time: float
    owned: frozenset[TopicPartition]
    processes: int


@dataclass(slots=True)
class Ingestion:
    """The state of the run: `start` returns immediately, then each step of `run` waits for its condition."""

    settings: DemoSettings
    cluster: Cluster
    loader: Loader
    flights: pa.Table
    progress: Callable[[int, str], None]
    log: CommitLog
    agents: dict[str, AgentProcess] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    produced: list[tuple[float, int]] = field(default_factory=list)
    connections: dict[str, int] = field(default_factory=dict)
    kill: Kill | None = None
    session: SessionWatch | None = None
    takeover: Commit | None = None
    live_since: float = 0.0
    began: float = 0.0
    sent: int = 0
    _bulk: int = 0

    def start(self) -> None:
        """Start the first two agents, without waiting for them or for records."""
        self.began = time.time()
        self._launch(_FIRST, "the first agent starts")
        self._launch(_SECOND, "the second agent starts")

    def note_bulk(self, records: int) -> None:
        """Note how many records were produced while the agents started."""
        self.sent = self._bulk = records
        self.produced.append((self.began, records))

    def run(self) -> None:
        """Run all steps from the first commit to the last, in order.

        Raises:
            DemoError: an agent failed, or a step took longer than the limit.
        """
        rows = int(self.settings.kill_at * self.flights.num_rows)
        self._until(
            f"ingesting until {rows:,} rows are in the table",
            lambda: self.log.rows >= rows and self._works(_FIRST, _SECOND),
        )
        self._count_connections()
        self.session = SessionWatch(
            # it outlives the brokers, and would log that they are gone
            AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0}),
            self.settings.group,
        )
        self.session.before_the_kill()
        self._kill(_FIRST)
        self._send_after_the_kill()
        # It starts while the group waits for the dead agent's session to end, and joins after that.
        self._launch(_THIRD, "the third agent starts")
        self._until("ingesting until another agent takes over", self._has_taken_over)
        self._until("ingesting until the third agent has its share", lambda: bool(self.owned(_THIRD)))
        self._note("join", _THIRD, "a third agent joins")
        self._send(self.flights.num_rows - self.sent)
        self.loader.flush()
        self._until("ingesting until every record is in the table", lambda: self.log.rows >= self.flights.num_rows)
        self._count_connections()
        self._note("done", "", "every record is in the table")
        self._stop()

    def owned(self, agent: str) -> frozenset[TopicPartition]:
        """Return the partitions of an agent's last report."""
        changes = read_ownership(self.telemetry(agent))
        return changes[-1].partitions if changes else frozenset()

    def _until(self, doing: str, reached: Callable[[], bool]) -> None:
        began = time.monotonic()
        while True:
            self.log.read()
            self.progress(self.log.rows, doing)
            if reached():
                return
            self._check_agents()
            if time.monotonic() - began > self.settings.limit_s:
                raise DemoError(
                    f"waited {self.settings.limit_s:.0f} s {doing}; {self.log.rows:,} rows are there: is the machine "
                    f"busy? {self.settings.directory / 'logs'} has what the agents say"
                )
            self._send_what_is_due()
            time.sleep(_TICK_S)

    def _send_what_is_due(self) -> None:
        # Live records start at the first commit, so that freshness measures a running pipeline and not its start.
        if not self.log.commits:
            return
        now = time.time()
        if not self.live_since:
            self.live_since = now
        due = self._bulk + int((now - self.live_since) * self.settings.live_rate) - self.sent
        self._send(min(due, self.flights.num_rows - _SLACK - self.sent))

    def _send_after_the_kill(self) -> None:
        """Send a half of the records held back if the others have all been sent: a takeover is seen by its records."""
        left = self.flights.num_rows - self.sent
        if left <= _SLACK:
            self._send(left // 2)

    def _send(self, count: int) -> None:
        if count <= 0:
            return
        self.loader.send(self.flights.slice(self.sent, count), self.sent, lambda _: None)
        self.sent += count
        self.produced.append((time.time(), self.sent))

    def _launch(self, name: str, text: str) -> None:
        settings = self.settings
        rack = settings.zones[len(self.agents) % len(settings.zones)]
        config = settings.directory / "agents" / f"{name}.toml"
        config.write_text(agent_config(settings, name, rack, self.cluster.bootstrap_servers))
        log = settings.directory / "logs" / f"{name}.log"
        self.agents[name] = AgentProcess.launch(name, config=config, log=log)
        self._note("start", name, text)

    def _kill(self, name: str) -> None:
        owned = self.owned(name)
        hit = self.agents[name].kill(self.settings.kill)
        if not hit:
            raise DemoError(f"{name} has no process of kind {self.settings.kill.value!r} to kill")
        self.kill = Kill(agent=name, time=time.time(), owned=owned, processes=len(hit))
        self._note("kill", name, f"{name} is killed ({self.settings.kill.value}, SIGKILL)")

    def _has_taken_over(self) -> bool:
        if self.kill is None or self.session is None:
            return False
        self.session.look()
        self.takeover = find_takeover(
            self.log.commits, dead=self.kill.agent, owned=self.kill.owned, since=self.kill.time
        )
        if self.takeover is None:
            return False
        text = f"{self.takeover.agent} commits rows of the dead agent's partitions"
        self.events.append(Event(time=self.takeover.time, kind="takeover", agent=self.takeover.agent, text=text))
        return True

    def _works(self, *names: str) -> bool:
        committed = {c.agent for c in self.log.commits if c.rows}
        return all(name in committed and self.owned(name) for name in names)

    def _check_agents(self) -> None:
        for name, agent in self.agents.items():
            if not agent.is_alive() and (self.kill is None or name != self.kill.agent):
                end = "\n".join(agent.log.read_text(errors="replace").splitlines()[-15:])
                raise DemoError(f"{name} ended by itself; {agent.log} ends with:\n{end}")

    def _count_connections(self) -> None:
        ports = frozenset(b.port for b in self.cluster.brokers)
        self.connections.update({n: a.connections(ports) for n, a in self.agents.items() if a.is_alive()})

    def _stop(self) -> None:
        living = [a for a in self.agents.values() if a.is_alive()]
        for agent in living:
            agent.stop()
        deadline = time.monotonic() + _STOP_S
        while any(a.is_alive() for a in living) and time.monotonic() < deadline:
            time.sleep(_TICK_S)

    def telemetry(self, agent: str) -> Path:
        """Return the telemetry file of an agent."""
        return self.settings.telemetry(agent)

    def _note(self, kind: str, agent: str, text: str) -> None:
        self.events.append(Event(time=time.time(), kind=kind, agent=agent, text=text))
