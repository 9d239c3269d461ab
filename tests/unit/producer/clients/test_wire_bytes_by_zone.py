"""Bytes on the wire by zone, while racks change and clients forget brokers."""

import itertools
import threading

from hypothesis import given
from hypothesis import strategies as st

from producer.clients.wire_bytes_by_zone import RACKS_WITHIN_S, WireBytesByZone

RACKS = st.dictionaries(st.integers(1, 3), st.sampled_from(["a", "b", None]))
SENT = st.dictionaries(st.integers(1, 3), st.integers(0, 5))
REPORTS = st.lists(st.tuples(SENT, RACKS, st.booleans(), st.sampled_from([0.0, 40.0, 70.0])), max_size=20)


@given(REPORTS)
def test_no_zone_loses_bytes_and_each_byte_belongs_to_one_zone_once_its_rack_is_known_or_late(
    reports: list[tuple[dict[int, int], dict[int, str | None], bool, float]],
) -> None:
    """A client counts each broker's bytes, and may begin at 0 again; racks may change or be unknown at any time."""
    now = 0.0
    found, counted, total = WireBytesByZone(lambda: now), dict.fromkeys(range(1, 4), 0), 0
    before: dict[str, int] = {}
    waits_from: dict[int, float] = {}
    held: dict[int, int] = {}
    for fresh, racks, forgets, seconds in reports:
        now += seconds
        for broker, sent in fresh.items():
            if forgets and sent < counted[broker]:
                counted[broker] = 0
            counted[broker] += sent
            total += sent
            held[broker] = held.get(broker, 0) + sent
        for broker in list(held):
            if broker in racks:
                waits_from.pop(broker, None)
            if broker in racks or now - waits_from.setdefault(broker, now) >= RACKS_WITHIN_S:
                held.pop(broker)
        totals = {one: counted[one] for one in fresh}
        zones = found.update(totals.copy, racks)
        assert sum(zones.values()) == total - sum(held.values())
        assert all(zones[zone] >= size for zone, size in before.items())
        before = zones
    now += RACKS_WITHIN_S
    assert sum(found.update(dict, {}).values()) == total


def test_bytes_that_were_sent_before_the_rack_was_known_belong_to_its_zone() -> None:
    """They stayed in the zone "unknown" for ever, although a new broker's rack is read a second later."""
    now = 0.0
    found = WireBytesByZone(lambda: now)
    assert found.update(lambda: {1: 100, -1: 7}, {}) == {"unknown": 7}  # a connection without a broker
    assert found.update(lambda: {1: 150, -1: 7}, {1: "a"}) == {"unknown": 7, "a": 150}
    assert found.update(lambda: {2: 10, 3: 5}, {1: "a", 3: None}) == {"unknown": 12, "a": 150}  # 3 has no rack
    now = RACKS_WITHIN_S
    assert found.update(lambda: {2: 20}, {1: "a"}) == {"unknown": 32, "a": 150}
    assert found.update(lambda: {2: 25}, {1: "a"}) == {"unknown": 37, "a": 150}
    assert found.update(lambda: {2: 30}, {2: "b"}) == {"unknown": 37, "a": 150, "b": 5}


def test_threads_count_no_byte_twice() -> None:
    """One thread read the totals, a second one read and added newer ones, and the first one's looked like a restart."""
    found, totals = WireBytesByZone(), itertools.count(1)

    def add() -> None:
        for _ in range(2_000):
            found.update(lambda: {1: next(totals)}, {1: "a"})

    threads = [threading.Thread(target=add) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found.by_zone() == {"a": next(totals) - 1}
