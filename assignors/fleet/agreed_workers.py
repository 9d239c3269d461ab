"""The workers per topic that all agents compute with, although each takes up new numbers at another time. Pure.

Numbers change at run time, by a file or the autoscaler. Two agents with different numbers compute different seats. So
each agent declares digests of the numbers that it can compute with, and all use the newest that every live agent
declares. This depends only on the view: agents with equal views use equal numbers.
"""

import json
from collections.abc import Sequence
from typing import Final

from assignors.fleet.agents_per_topic import FleetWorkers
from assignors.fleet.agents_view import Agent, View
from assignors.fleet.shared_settings import WORKERS, declared_workers, settings_drift
from assignors.hashing.hash import hash64

_KEEP_S: Final = 30.0
_MOST: Final = 3  # every join contains the declaration
_REMEMBERED: Final = 32


def workers_digest(workers: FleetWorkers) -> str:
    """Return a digest of the numbers that can change at run time; agents declare the other numbers as settings."""
    scaled = workers.scaled if workers.published is None else workers.published
    content = json.dumps([sorted(workers.overrides.items()), sorted(scaled.items())])
    return f"#{hash64(content):016x}"[:9]


def agreed_digest(view: View) -> str | None:
    """Return the digest of the newest numbers that all agents of a view declare; None if they have none in common."""
    declared = [declared_workers(agent) for agent in view.members]
    common = set.intersection(*map(set, declared)) if declared else set()
    return min(common, key=lambda one: (sum(mine.index(one) for mine in declared), one), default=None)


def numbers_agree(view: View) -> bool:
    """Return whether all agents of a view have numbers in common, or declare none."""
    return agreed_digest(view) is not None or not any(declared_workers(agent) for agent in view.members)


def status_drift(view: View, this: Agent, *, unread: bool) -> list[str]:
    """Return the settings in which the agents differ from each other and from a file.

    Agents take up new numbers one after another, which is no problem while they have numbers in common.

    Args:
        view: the live agents.
        this: the settings of the file.
        unread: whether the present numbers could not be read for `this`.
    """
    return settings_drift([*view.members, this], but=(WORKERS,) if unread or numbers_agree(view) else ())


class KnownWorkers:
    """The numbers with which an agent can compute; used by one thread.

    New numbers come into force once all agents declare them. Until then all agents compute with the previous ones, for
    a limited time: if an agent does not get the new numbers, the consumer groups assign the partitions.

    Args:
        keep_s: time for which previous numbers are declared besides the newest ones, seconds.
    """

    def __init__(self, keep_s: float = _KEEP_S) -> None:
        self._keep_s = keep_s
        self._known: dict[str, FleetWorkers] = {}
        self._newest = ""
        self._until: dict[str, float] = {}  # of previous numbers, the latest first

    @property
    def empty(self) -> bool:
        """Whether no numbers are known yet."""
        return not self._known

    def take(self, workers: FleetWorkers, now_s: float) -> None:
        """Note the present numbers.

        Args:
            workers: the numbers.
            now_s: seconds of a monotonic clock.
        """
        digest = workers_digest(workers)
        if self._newest and digest != self._newest:
            self._until = {self._newest: now_s + self._keep_s, **self._until}
        self._until.pop(digest, None)
        self._newest, self._known[digest] = digest, workers
        # Of many changes within this time the oldest numbers stay: they are the ones that the others declare, too.
        self._until = dict([(one, until) for one, until in self._until.items() if now_s < until][1 - _MOST :])

    def declared(self, agent: Agent) -> Agent:
        """Return the agent with the digests of its numbers, the newest first, besides its settings."""
        digests = [self._newest, *self._until]
        others = [one for one in agent.settings if not one.startswith(f"{WORKERS}=")]
        settings = tuple(sorted([*others, f"{WORKERS}={'+'.join(digests)}"]))
        return Agent(agent.id, agent.capacity, agent.zone, settings)

    def in_force(self, view: View, agent: str) -> FleetWorkers:
        """Return the numbers to compute with: those on which the view agrees, else this agent's newest.

        Args:
            view: the present view.
            agent: id of this agent.
        """
        mine = next((declared_workers(one) for one in view.members if one.id == agent), ())
        self._forget(mine)
        agreed = agreed_digest(view)
        return self._known.get(agreed or "", self._known[self._newest])

    def _forget(self, declared: Sequence[str]) -> None:
        """Keep the numbers that this agent declares, those that the view says it declares, and the last other ones.

        A view can name numbers of an earlier declaration, if a join took long.
        """
        kept = {self._newest, *self._until, *declared}
        kept.update([digest for digest in self._known if digest not in kept][-_REMEMBERED:])
        self._known = {digest: one for digest, one in self._known.items() if digest in kept}
