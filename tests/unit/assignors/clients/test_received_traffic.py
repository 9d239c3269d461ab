"""The consumer's leg: bytes by topic and zone, their share and their price."""

import json

import pytest

from assignors import AssignorError
from assignors.clients import BrokerRacks, Received, ReceivedTraffic

COUNTS = {
    ("flights", 1): Received(10, 1_000),
    ("flights", 2): Received(20, 3_000_000_000),
    ("flights", 4): Received(1, 50),
    ("weather", 3): Received(5, 1_000_000_000),
    ("weather", 9): Received(2, 70),
}
RACKS = {1: "az-a", 2: "az-b", 3: "az-b", 4: None}


def test_bytes_are_added_up_by_topic_and_zone() -> None:
    """Two brokers of a zone are one cell; a broker without a rack, and one that is not known, are unknown."""
    found = ReceivedTraffic.of(COUNTS, RACKS, "az-a", {1: 500, 2: 1_000, 3: 2_000, 9: 30})
    assert found.topics == {
        ("flights", "az-a"): (10, 1_000),
        ("flights", "az-b"): (20, 3_000_000_000),
        ("flights", "unknown"): (1, 50),
        ("weather", "az-b"): (5, 1_000_000_000),
        ("weather", "unknown"): (2, 70),
    }
    assert found.wire_bytes == {"az-a": 500, "az-b": 3_000, "unknown": 30}
    assert (found.local, found.cross, found.unknown) == ((10, 1_000), (25, 4_000_000_000), (3, 120))
    assert found.cross_zone_share == pytest.approx(1.0, abs=1e-6)
    assert found.cost(0.02) == pytest.approx(0.08)
    assert found.wire_cost(0.02) == pytest.approx(3_000 / 1e9 * 0.02)
    assert json.loads(json.dumps(found.as_dict()))["topics"][0] == {
        "topic": "flights",
        "zone": "az-a",
        "records": 10,
        "bytes": 1_000,
    }


def test_nothing_is_local_to_a_consumer_without_a_zone() -> None:
    """And nothing costs: a share or a price would be invented."""
    found = ReceivedTraffic.of(COUNTS, RACKS, None, {1: 5})
    assert (found.local, found.cross) == ((0, 0), (0, 0))
    assert found.unknown.records == 38
    assert found.cross_zone_share == 0
    assert found.cost() == 0
    assert found.wire_cost() is None


@pytest.mark.parametrize("price", [-1, float("nan")])
def test_a_price_below_zero_is_refused(price: float) -> None:
    """It would turn a cost into a gain."""
    with pytest.raises(AssignorError, match="price_per_gb"):
        ReceivedTraffic(rack="az-a").cost(price)
    with pytest.raises(AssignorError, match="price_per_gb"):
        ReceivedTraffic(rack="az-a").wire_cost(price)


def test_racks_are_requested_for_unknown_brokers_and_at_most_once_a_minute() -> None:
    """A cluster that refuses the request must not slow down each look at the traffic."""
    asked: list[float] = []
    now = [0.0]
    answers: list[dict[int, str | None]] = [{}, {1: "az-a", 2: None}, {3: "az-c"}]

    def ask() -> dict[int, str | None]:
        asked.append(now[0])
        return answers[len(asked) - 1]

    racks = BrokerRacks({}, ask, lambda: now[0])
    assert racks.of([]) == {}
    assert racks.of([1]) == {}
    assert racks.of([1]) == {}
    now[0] = 61.0
    assert racks.of([1, 2]) == {1: "az-a", 2: None}
    now[0] = 500.0
    assert racks.of([2]) == {1: "az-a", 2: None}
    assert racks.of([3]) == {1: "az-a", 2: None, 3: "az-c"}
    assert asked == [0.0, 61.0, 500.0]
