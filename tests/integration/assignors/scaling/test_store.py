"""Stores keep the same promises: the one in memory, and a real Redis."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

from assignors.errors import StoreError
from assignors.scaling import Observation, State
from assignors.scaling.alerts import alert_hooks
from assignors.scaling.state_store import MemoryStore, RedisStore, Store
from spark_sink.demo.cluster.ports import choose_ports

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A redis-server that only this test uses."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed (Debian's package of that name has it)")
    [port] = choose_ports(1)
    folder = tmp_path_factory.mktemp("redis")
    process = subprocess.Popen(
        [binary, "--port", str(port), "--save", "", "--dir", str(folder), "--logfile", str(Path(folder) / "log")]
    )
    client = redis.Redis(port=port)
    try:
        end = time.monotonic() + 30
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < end, "redis-server did not come up"
                time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        client.close()
        process.kill()
        process.wait()


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest) -> Store:
    """One of each."""
    if request.param == "memory":
        return MemoryStore()
    url: str = request.getfixturevalue("server")
    return RedisStore(url, prefix=f"test:{time.monotonic_ns()}")


def observation(time_s: float) -> Observation:
    """Three partitions with offsets that tell the time."""
    return Observation(
        time_s=time_s, start=np.array([0, 1, -2]), end=np.arange(3) + int(time_s), committed=np.array([-1, -2, 2**53])
    )


def test_a_window_comes_back_as_it_went_in(store: Store) -> None:
    """Sentinels and large offsets included, the oldest first, nothing too old, topics apart."""
    for time_s in (100.0, 130.0, 160.5):
        store.add("a", observation(time_s), 50.0)
    store.add("b", observation(7.0), 50.0)
    found = store.recent("a")
    assert [one.time_s for one in found] == [130.0, 160.5]
    assert found[-1].committed.tolist() == [-1, -2, 2**53]
    assert found[-1].end.dtype == np.int64
    assert store.recent("none") == []


def test_a_state_comes_back_as_it_went_in(store: Store) -> None:
    """All fields."""
    state = State(workers=3, changed_s=12.5, wanted=((1.0, 2), (2.5, 3)), worker_rate=99.5)
    assert store.state("a") is None
    store.keep("a", state)
    assert store.state("a") == state


def test_what_nobody_looks_at_expires(server: str) -> None:
    """A topic that is gone leaves nothing behind."""
    store = RedisStore(server, prefix="expiring", expire_s=1.0)
    store.add("a", observation(1.0), 50.0)
    store.keep("a", State())
    client = redis.Redis.from_url(server)
    assert all(0 < client.pttl(key) <= 1000 for key in client.keys("expiring:*"))
    client.close()


def test_a_server_that_goes_away_is_a_named_error(server: str) -> None:
    """The round is reported, and the next one may find it again."""
    with pytest.raises(StoreError, match="does not answer"):
        RedisStore("redis://127.0.0.1:1/0")
    with pytest.raises(StoreError, match="is not an address of Redis"):
        RedisStore("nonsense://")
    store = RedisStore(server)
    store._redis.close()
    store._redis = redis.Redis(port=1)
    with pytest.raises(StoreError, match="does not answer"):
        store.recent("a")


def test_an_alert_reaches_a_channel(server: str) -> None:
    """Each listener is notified."""
    client = redis.Redis.from_url(server)
    listener = client.pubsub()  # type: ignore[no-untyped-call]  # half typed
    listener.subscribe("azimuth")
    while (listener.get_message(timeout=5.0) or {}).get("type") != "subscribe":
        pass
    (hook,) = alert_hooks([f"{server}?channel=azimuth"])
    hook({"topic": "flights", "group": "g", "kind": "hot", "text": "hot"})
    message = listener.get_message(timeout=5.0)
    assert message is not None
    assert b'"kind": "hot"' in message["data"]
    listener.close()
    client.close()
