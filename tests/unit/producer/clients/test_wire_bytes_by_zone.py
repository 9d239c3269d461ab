"""Bytes on the wire by zone, while racks change and clients forget brokers."""

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
        zones = found.update([(one, counted[one]) for one in fresh], racks)
        assert sum(zones.values()) == total
        assert all(zones[zone] >= size for zone, size in before.items())
        before = zones
