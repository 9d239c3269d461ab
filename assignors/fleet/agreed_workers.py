"""The workers and weights per topic with which all agents compute, although each takes up new ones at another time.

Pure.

Numbers change at run time, by a file or the autoscaler. Two agents with different numbers compute different seats. So
each agent declares digests of the numbers that it can compute with, and all use the newest that every live agent
declares. This depends only on the view: agents with equal views use equal numbers.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from assignors.fleet.agents_per_topic import FleetWorkers
from assignors.fleet.agents_view import Agent, View
from assignors.fleet.drifted_settings import WORKERS, declared_digests, settings_drift
from assignors.hashing.murmur3_hash import hash64

_KEEP_S: Final = 30.0
_MOST: Final = 3  # every join contains the declaration
_REMEMBERED: Final = 32


def workers_digest(workers: FleetWorkers) -> str:
    """Return a digest of the numbers that can change at run time; agents declare the other numbers as settings."""
    scaled = workers.scaled if workers.published is None else workers.published
    given = [sorted(workers.overrides.items()), sorted(scaled.items())]
    # Without weights the digest is that of earlier versions, so agents of both versions can share a fleet.
    content = json.dumps([*given, sorted(workers.weights.items())] if workers.weights else given)
    return f"#{hash64(content):016x}"[:9]


def agreed_digest(view: View, name: str = WORKERS) -> str | None:
    """Return the digest of the newest values that all agents of a view declare; None if they have none in common."""
    declared = [declared_digests(agent, name) for agent in view.members]
    common = set.intersection(*map(set, declared)) if declared else set()
    return min(common, key=lambda one: (sum(mine.index(one) for mine in declared), one), default=None)


def numbers_agree(view: View) -> bool:
    """Return whether all agents of a view have numbers in common, or declare none."""
    return agreed_digest(view) is not None or not any(declared_digests(agent) for agent in view.members)


def status_drift(view: View, this: Agent, *, unread: bool) -> list[str]:
    """Return the settings in which the agents differ from each other and from a file.

    Agents take up new numbers one after another, which is not a problem while they have numbers in common.

    Args:
        view: the live agents.
        this: the settings of the file.
        unread: whether the current numbers could not be read for `this`.
    """
    return settings_drift([*view.members, this], but=(WORKERS,) if unread or numbers_agree(view) else ())


V = TypeVar("V")


class KnownValues(Generic[V]):
    """The values with which an agent can compute; used by one thread.

    New values come into force once all agents declare them. Until then all agents compute with the previous ones, for
    a limited time.

    Args:
        name: the name under which agents declare their digests.
        digest: returns the digest of a value.
        keep_s: time for which previous values are declared besides the newest ones, seconds.
    """

    def __init__(self, name: str, digest: Callable[[V], str], keep_s: float = _KEEP_S) -> None:
        self._name = name
        self._digest = digest
        self._keep_s = keep_s
        self._known: dict[str, V] = {}
        self._newest = ""
        self._until: dict[str, float] = {}  # of previous values, the latest first

    @property
    def empty(self) -> bool:
        """Whether no value is known yet."""
        return not self._known

    def take(self, value: V, now_s: float) -> None:
        """Note the current value.

        Args:
            value: the value.
            now_s: seconds of a monotonic clock.
        """
        digest = self._digest(value)
        if self._newest and digest != self._newest:
            self._until = {self._newest: now_s + self._keep_s, **self._until}
        self._until.pop(digest, None)
        self._newest, self._known[digest] = digest, value
        # Of many changes within this time the oldest values stay: they are the ones that the others declare, too.
        self._until = dict([(one, until) for one, until in self._until.items() if now_s < until][1 - _MOST :])

    def declared(self, agent: Agent) -> Agent:
        """Return the agent with the digests of its values, the newest first, besides its settings."""
        digests = [self._newest, *self._until]
        others = [one for one in agent.settings if not one.startswith(f"{self._name}=")]
        settings = tuple(sorted([*others, f"{self._name}={'+'.join(digests)}"]))
        return Agent(agent.id, agent.capacity, agent.zone, settings)

    def agreed(self, view: View, agent: str) -> V | None:
        """Return the newest value that all agents of a view declare; None if they have none in common.

        Args:
            view: the current view.
            agent: id of this agent.
        """
        mine = next((declared_digests(one, self._name) for one in view.members if one.id == agent), ())
        self._forget(mine)
        return self._known.get(agreed_digest(view, self._name) or "")

    def _forget(self, declared: Sequence[str]) -> None:
        """Keep the values that this agent declares, those that the view says it declares, and the last other ones.

        A view can name values of an earlier declaration, if a join took long.
        """
        kept = {self._newest, *self._until, *declared}
        kept.update([digest for digest in self._known if digest not in kept][-_REMEMBERED:])
        self._known = {digest: one for digest, one in self._known.items() if digest in kept}


class KnownWorkers(KnownValues[FleetWorkers]):
    """The numbers with which an agent can compute; if an agent does not get the new numbers, the groups decide.

    Args:
        keep_s: as for `KnownValues`.
    """

    def __init__(self, keep_s: float = _KEEP_S) -> None:
        super().__init__(WORKERS, workers_digest, keep_s)

    def in_force(self, view: View, agent: str) -> FleetWorkers:
        """Return the numbers to compute with: those on which the view agrees, else this agent's newest.

        Args:
            view: the current view.
            agent: id of this agent.
        """
        return self.agreed(view, agent) or self._known[self._newest]
