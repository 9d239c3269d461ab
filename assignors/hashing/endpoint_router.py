"""Picks a serving endpoint for each stream; clients need no communication.

Every client ranks the endpoints by rendezvous hashing, so most clients of a stream pick the same one and share its
cache. A client skips an endpoint that is dead or overloaded and takes the next in rank. It reviews each pick after a
period with jitter, so that moves spread over time. A pick is final once throughput is stable.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from assignors.errors import NodesError
from assignors.hashing.rendezvous import Rendezvous


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """How often picks are reviewed, and when they are final.

    Attributes:
        period_s: shortest and longest time between two reviews of a pick; each is drawn between them.
        bound: an endpoint loaded above bound x the mean load is skipped; 1.25 keeps most streams at their first choice.
        settled: a pick is final once throughput changed by less than this share between two reviews.
        dead_s: how long an endpoint that failed is skipped.
    """

    period_s: tuple[float, float] = (300.0, 600.0)
    bound: float = 1.25
    settled: float = 0.05
    dead_s: float = 30.0


@dataclass(slots=True)
class _Pick:
    endpoint: str
    review_at: float
    throughput: float | None = None
    settled: bool = False


@dataclass(slots=True)
class Router:
    """Picks of one client.

    Contract:
    * No I/O and no clock: `now` is an argument, in seconds of any steady clock.
    * Clients with the same endpoints, weights, seed, dead endpoints and loads pick the same endpoint.
    * A pick changes only when its period is over and it is not final, or when its endpoint died.
    * One thread at a time.
    """

    endpoints: Iterable[str]
    weights: Mapping[str, float] | None = None
    seed: int = 0
    settings: RouterSettings = field(default_factory=RouterSettings)
    jitter: Callable[[float, float], float] = random.uniform
    _rank: Rendezvous = field(init=False)
    _dead: dict[str, float] = field(init=False, default_factory=dict)
    _picks: dict[str, _Pick] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._rank = Rendezvous(self.endpoints, self.weights, self.seed)

    def pick(
        self, stream: str, now: float, load: Mapping[str, float] | None = None, throughput: float | None = None
    ) -> str:
        """Return the endpoint that serves the stream.

        Args:
            stream: its name.
            now: seconds.
            load: of the endpoints, any unit; a missing one counts as 0. None: unknown, no endpoint is overloaded.
            throughput: of this stream at its pick, any unit; where given, a stable pick becomes final.

        Returns:
            The current pick while it is valid; else the best ranked endpoint that is neither dead nor overloaded; else
            the best that is not dead; else the first in rank.
        """
        pick = self._picks.get(stream)
        if pick is not None and self._alive(pick.endpoint, now) and not self._is_due(pick, now, throughput):
            return pick.endpoint
        endpoint = self._choose(stream, now, load or {}, pick.endpoint if pick is not None else None)
        moved = pick is None or pick.endpoint != endpoint
        self._picks[stream] = _Pick(endpoint, now + self._period(), None if moved else throughput)
        return endpoint

    def fail(self, endpoint: str, now: float) -> None:
        """Report that an endpoint does not answer: it is skipped for `dead_s`.

        Raises:
            NodesError: unknown endpoint.
        """
        if endpoint not in self._rank.nodes:
            raise NodesError(f"unknown endpoint {endpoint!r}, need one of {list(self._rank.nodes)}")
        self._dead[endpoint] = now + self.settings.dead_s

    def revive(self, endpoint: str) -> None:
        """Report that an endpoint answers again."""
        self._dead.pop(endpoint, None)

    def forget(self, stream: str) -> None:
        """Drop the pick of a stream that ended."""
        self._picks.pop(stream, None)

    def _alive(self, endpoint: str, now: float) -> bool:
        return self._dead.get(endpoint, now) <= now

    def _is_due(self, pick: _Pick, now: float, throughput: float | None) -> bool:
        if pick.settled or now < pick.review_at:
            return False
        if throughput is not None and pick.throughput is not None:
            change = abs(throughput - pick.throughput)
            pick.settled = change <= self.settings.settled * max(throughput, pick.throughput)
        return not pick.settled

    def _choose(self, stream: str, now: float, load: Mapping[str, float], present: str | None) -> str:
        ranked = self._rank.ranked(stream)
        alive = [e for e in ranked if self._alive(e, now)]
        limit = self.settings.bound * sum(load.get(e, 0.0) for e in alive) / max(1, len(alive))
        # The current endpoint's load is partly this stream's own: at the limit it may stay.
        fitting = (e for e in alive if load.get(e, 0.0) < limit or not limit or (e == present and load[e] <= limit))
        return next(fitting, (alive or ranked)[0])

    def _period(self) -> float:
        return self.jitter(*self.settings.period_s)
