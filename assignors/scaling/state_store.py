"""Stores observations and states between decisions: in this process, or in Redis, so that a successor can continue."""

import json
from typing import Any, Protocol

import numpy as np

from assignors.clients.masked_addresses import shown
from assignors.clients.redis_addresses import REDIS_ADDRESSES, close_redis, connect_redis
from assignors.errors import StoreError
from assignors.scaling.observation import Observation
from assignors.scaling.policy_contract import State

# What JSON and numpy raise for content of other programs, or of a later version.
_FOREIGN = (ValueError, TypeError, OverflowError, RecursionError)


class Store(Protocol):
    """Stores the window and the state of each topic.

    Contract: `recent` returns the observations of `add`, the oldest first, within `keep_s`; `state` returns the value
    of the last `keep`, or None. Expired, lost or foreign content is not an error: a new window begins.
    """

    def add(self, key: str, observation: Observation, keep_s: float) -> None:
        """Add an observation; drop those that are more than `keep_s` older."""
        ...

    def recent(self, key: str) -> list[Observation]:
        """Return the observations of a topic."""
        ...

    def keep(self, key: str, state: State) -> None:
        """Store a state."""
        ...

    def state(self, key: str) -> State | None:
        """Return the last stored state."""
        ...


class MemoryStore:
    """`Store` in this process; a restart loses it."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Observation]] = {}
        self._states: dict[str, State] = {}

    def add(self, key: str, observation: Observation, keep_s: float) -> None:
        """As in `Store`."""
        kept = [one for one in self._seen.get(key, ()) if one.time_s >= observation.time_s - keep_s]
        self._seen[key] = [*kept, observation]

    def recent(self, key: str) -> list[Observation]:
        """As in `Store`."""
        return list(self._seen.get(key, ()))

    def keep(self, key: str, state: State) -> None:
        """As in `Store`."""
        self._states[key] = state

    def state(self, key: str) -> State | None:
        """As in `Store`."""
        return self._states.get(key)


class RedisStore:
    """`Store` in Redis: a list and a value per topic; both expire when no evaluator runs."""

    def __init__(self, url: str, *, prefix: str = "azimuth:scaling", expire_s: float = 86_400.0) -> None:
        """Connect.

        Args:
            url: in redis-py's format, or with Sentinels as `sentinel_address` reads it.
            prefix: prefix of all keys.
            expire_s: time without access after which a topic's data expire.

        Raises:
            StoreError: redis-py is not installed, the address is invalid, or the server does not answer.
        """
        try:
            import redis  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise StoreError("a Redis store needs redis-py: pip install 'kafka-azimuth[redis]'") from error
        self._failures = (redis.RedisError, OSError)
        self._prefix, self._expire_s, self._address = prefix, max(int(expire_s), 1), shown(url)
        try:
            self._redis: Any = connect_redis(url, socket_timeout=5, socket_connect_timeout=5)
            self._redis.ping()
        except ValueError as error:  # its message may contain a part of the password
            raise StoreError(
                f"{self._address} is not an address of Redis: need {REDIS_ADDRESSES}, and %XX for each character of a "
                "password that has a meaning there"
            ) from error
        except self._failures as error:
            raise StoreError(f"{self._address}: the store does not answer: {error}") from error

    def add(self, key: str, observation: Observation, keep_s: float) -> None:
        """As in `Store`.

        Raises:
            StoreError: the server does not answer.
        """
        name = f"{self._prefix}:seen:{key}"
        seen = [(text, _observation(text)) for text in self._asked(self._redis.lrange, name, 0, -1)]
        old = sum(one is not None and one.time_s < observation.time_s - keep_s for _, one in seen)
        text = json.dumps(
            [observation.time_s, *(column.tolist() for column in _columns(observation))], separators=(",", ":")
        )
        pipe = self._redis.pipeline(transaction=True)
        for foreign in {found for found, one in seen if one is None}:
            pipe.lrem(name, 0, foreign)
        pipe.rpush(name, text)
        pipe.ltrim(name, old, -1)
        pipe.expire(name, self._expire_s)
        self._asked(pipe.execute)

    def recent(self, key: str) -> list[Observation]:
        """As in `Store`.

        Raises:
            StoreError: the server does not answer.
        """
        texts = self._asked(self._redis.lrange, f"{self._prefix}:seen:{key}", 0, -1)
        return [one for one in map(_observation, texts) if one is not None]

    def keep(self, key: str, state: State) -> None:
        """As in `Store`.

        Raises:
            StoreError: the server does not answer.
        """
        text = json.dumps([state.workers, state.changed_s, state.wanted, state.worker_rate])
        self._asked(self._redis.set, f"{self._prefix}:state:{key}", text, self._expire_s)

    def state(self, key: str) -> State | None:
        """As in `Store`.

        Raises:
            StoreError: the server does not answer.
        """
        text = self._asked(self._redis.get, f"{self._prefix}:state:{key}")
        return None if text is None else _state(text)

    def close(self) -> None:
        """Close the connections."""
        close_redis(self._redis)

    def _asked(self, command: Any, *arguments: Any) -> Any:  # noqa: ANN401 -- redis-py's own
        try:
            return command(*arguments)
        except self._failures as error:
            raise StoreError(f"{self._address}: the store does not answer: {error}") from error


def _observation(text: Any) -> Observation | None:  # noqa: ANN401 -- redis-py's own
    try:
        time_s, *columns = json.loads(text)
        start, end, committed = (np.array(column, dtype=np.int64) for column in columns)
        if not start.ndim == end.ndim == committed.ndim == 1 or not len(start) == len(end) == len(committed):
            return None
        return Observation(time_s=float(time_s), start=start, end=end, committed=committed)
    except _FOREIGN:
        return None


def _state(text: Any) -> State | None:  # noqa: ANN401 -- redis-py's own
    try:
        workers, changed_s, wanted, worker_rate = json.loads(text)
        pairs = tuple((float(time_s), int(number)) for time_s, number in wanted)
        return State(
            workers=int(workers),
            changed_s=None if changed_s is None else float(changed_s),
            wanted=pairs,
            worker_rate=None if worker_rate is None else float(worker_rate),
        )
    except _FOREIGN:
        return None


def _columns(observation: Observation) -> tuple[np.ndarray[Any, np.dtype[np.int64]], ...]:
    return observation.start, observation.end, observation.committed
