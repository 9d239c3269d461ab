"""Bytes on the wire by zone, while racks change and clients forget brokers."""

import itertools
import threading

from hypothesis import given
from hypothesis import strategies as st

from producer.clients.wire_bytes_by_zone import WireBytesByZone

RACKS = st.dictionaries(st.integers(1, 3), st.sampled_from(["a", "b", None]))
REPORTS = st.lists(st.tuples(st.dictionaries(st.integers(1, 3), st.integers(0, 5)), RACKS, st.booleans()), max_size=20)


@given(REPORTS)
def test_no_zone_loses_bytes_and_each_byte_belongs_to_one_zone(
    reports: list[tuple[dict[int, int], dict[int, str | None], bool]],
) -> None:
    """A client counts each broker's bytes, and may begin at 0 again; racks may change or be unknown at any time."""
    found, counted, total = WireBytesByZone(), dict.fromkeys(range(1, 4), 0), 0
    before: dict[str, int] = {}
    for fresh, racks, forgets in reports:
        for broker, sent in fresh.items():
            if forgets and sent < counted[broker]:
                counted[broker] = 0
            counted[broker] += sent
            total += sent
        totals = {one: counted[one] for one in fresh}
        zones = found.update(totals.copy, racks)
        assert sum(zones.values()) == total
        assert all(zones[zone] >= size for zone, size in before.items())
        before = zones


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
