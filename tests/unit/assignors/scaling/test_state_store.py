"""The Redis store without a server; the integration tests run it on a server."""

from typing import Any, Self

import numpy as np
import pytest

from assignors.errors import StoreError
from assignors.scaling import Observation, State, state_store
from assignors.scaling.state_store import RedisStore

FOREIGN = [b"", b"{}", b"null", b"no json", b"\xff", b"[1]", b"[1, [2], [3, 4], [5]]", b"[1, 2, 3, 4]", b"[" * 100_000]


@pytest.mark.parametrize("url", ["redis://:canary@127.0.0.1:1/0", "redis://:canary/canary@127.0.0.1:1/0"])
def test_the_password_is_in_no_error(url: str) -> None:
    """The password is hidden if the server does not answer, and if one of its characters is not escaped."""
    with pytest.raises(StoreError, match=r"redis://\*\*\*@127.0.0.1:1/0") as raised:
        RedisStore(url)
    assert "canary" not in str(raised.value)


class Server:
    """Lists and values in memory; a pipeline runs each command at once."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = {}
        self.values: dict[str, Any] = {}

    def ping(self) -> None:
        """It answers."""

    def pipeline(self, *, transaction: bool) -> Self:
        """Of this server."""
        assert transaction
        return self

    def execute(self) -> None:
        """All is done."""

    def expire(self, _name: str, seconds: int) -> None:
        """Nothing expires here."""
        assert seconds > 0

    def rpush(self, name: str, text: str) -> None:
        """Add."""
        self.lists.setdefault(name, []).append(text)

    def lrem(self, name: str, _count: int, text: object) -> None:
        """Remove all that are equal."""
        self.lists[name] = [one for one in self.lists[name] if one != text]

    def ltrim(self, name: str, first: int, _last: int) -> None:
        """Drop the first ones."""
        self.lists[name] = self.lists[name][first:]

    def lrange(self, name: str, _first: int, _last: int) -> list[Any]:
        """All of them."""
        return list(self.lists.get(name, ()))

    def get(self, name: str) -> object:
        """One value."""
        return self.values.get(name)

    def set(self, name: str, text: str, _expire_s: int) -> None:
        """Store it."""
        self.values[name] = text


def observed(time_s: float) -> Observation:
    """One partition."""
    one = np.array([int(time_s)], dtype=np.int64)
    return Observation(time_s=time_s, start=one, end=one, committed=one)


@pytest.mark.parametrize("foreign", FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_content_is_as_lost_content(foreign: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """One value of another program, or of a later version, would end the evaluator at each start."""
    server = Server()
    monkeypatch.setattr(state_store, "connect_redis", lambda *_, **__: server)
    store = RedisStore("redis://localhost:1/0", prefix="p")
    store.add("t", observed(1.0), 100.0)
    server.rpush("p:seen:t", foreign)  # type: ignore[arg-type]  # what a server returns
    server.values["p:state:t"] = foreign
    store.add("t", observed(2.0), 100.0)
    assert [one.time_s for one in store.recent("t")] == [1.0, 2.0]
    assert len(server.lists["p:seen:t"]) == 2, "it would be read again in each round"
    assert store.state("t") is None
    store.keep("t", State(workers=3, changed_s=1.0, wanted=((1.0, 3),), worker_rate=None))
    assert store.state("t") == State(workers=3, changed_s=1.0, wanted=((1.0, 3),), worker_rate=None)
