"""Router: clients that do not talk meet at the same endpoint, and leave it for good reasons only."""

import pytest

from assignors import NodesError, Rendezvous, Router, RouterSettings

ENDPOINTS = [f"cache-{i}" for i in range(8)]
STREAMS = [f"stream-{i}" for i in range(200)]


def router() -> Router:
    """A client whose picks are reviewed after 400 s."""
    return Router(ENDPOINTS, jitter=lambda low, high: (low + high) / 2 - 50)


def test_clients_agree_without_talking() -> None:
    """One cached copy of a stream: every client picks the rendezvous owner."""
    owner = Rendezvous(ENDPOINTS).owner
    clients = [router() for _ in range(3)]
    assert all({c.pick(s, 0.0) for c in clients} == {owner(s)} for s in STREAMS)


def test_a_dead_endpoint_is_skipped_for_the_next_in_rank_and_comes_back() -> None:
    """Failure moves only the streams of the dead one; after its time, or when revived, picks return when due."""
    client = router()
    before = {s: client.pick(s, 0.0) for s in STREAMS}
    client.fail("cache-3", 1.0)
    after = {s: client.pick(s, 2.0) for s in STREAMS}
    ranked = Rendezvous(ENDPOINTS).ranked
    assert all(after[s] == (ranked(s)[1] if before[s] == "cache-3" else before[s]) for s in STREAMS)
    client.revive("cache-3")
    assert {s: client.pick(s, 500.0) for s in STREAMS} == before


def test_all_dead_is_better_than_no_answer() -> None:
    """With nothing alive the first in rank is tried."""
    client = router()
    for endpoint in ENDPOINTS:
        client.fail(endpoint, 0.0)
    assert client.pick("s", 1.0) == Rendezvous(ENDPOINTS).owner("s")


def test_an_overloaded_endpoint_is_skipped_when_the_period_is_over() -> None:
    """A live pick stays within its period, whatever the load; then the bound counts."""
    client = router()
    first, second = Rendezvous(ENDPOINTS).top("s", 2)
    hot = dict.fromkeys(ENDPOINTS, 10.0) | {first: 100.0}
    assert client.pick("s", 0.0) == first
    assert client.pick("s", 399.0, hot) == first
    assert client.pick("s", 401.0, hot) == second


def test_a_pick_that_settled_stays() -> None:
    """Once throughput is steady, load elsewhere does not move the stream any more."""
    client = router()
    first = client.pick("s", 0.0, throughput=5.0)
    hot = dict.fromkeys(ENDPOINTS, 10.0) | {first: 100.0}
    assert client.pick("s", 401.0, throughput=8.0) == first
    assert client.pick("s", 802.0, throughput=8.1) == first
    assert client.pick("s", 9000.0, hot, throughput=3.0) == first
    client.forget("s")
    assert client.pick("s", 9001.0, hot) != first


def test_periods_are_drawn_between_the_bounds() -> None:
    """Jitter keeps a thousand clients from looking at the same second."""
    drawn: list[tuple[float, float]] = []

    def draw(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    Router(ENDPOINTS, settings=RouterSettings(period_s=(3.0, 6.0)), jitter=draw).pick("s", 0.0)
    assert drawn == [(3.0, 6.0)]


def test_an_unknown_endpoint_is_named() -> None:
    """A typing error must not silently mark nothing."""
    with pytest.raises(NodesError, match="'cache-99'"):
        router().fail("cache-99", 0.0)
