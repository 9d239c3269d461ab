"""Addresses of Redis with Sentinels."""

import pytest

from assignors.clients.redis_addresses import SentinelAddress, is_sentinel, sentinel_address


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis+sentinel://a/azimuth", SentinelAddress(sentinels=(("a", 26379),), service="azimuth")),
        (
            "redis+sentinel://a:1,b,[::1]:3,[::2]/s/7",
            SentinelAddress(sentinels=(("a", 1), ("b", 26379), ("::1", 3), ("::2", 26379)), service="s", database=7),
        ),
        (
            "redis+sentinel://u:p%40@a:1/s?sentinel_username=v&sentinel_password=w",
            SentinelAddress(
                sentinels=(("a", 1),),
                service="s",
                server={"username": "u", "password": "p@"},
                sentinel={"username": "v", "password": "w"},
            ),
        ),
        (
            "rediss+sentinel://:p@a:1/s?ssl_ca_certs=/ca.pem",
            SentinelAddress(
                sentinels=(("a", 1),),
                service="s",
                server={"ssl": True, "ssl_ca_certs": "/ca.pem", "password": "p"},
                sentinel={"ssl": True, "ssl_ca_certs": "/ca.pem"},
            ),
        ),
    ],
)
def test_an_address_is_read(url: str, expected: SentinelAddress) -> None:
    """The password is the master's, and TLS is for both."""
    assert is_sentinel(url)
    assert sentinel_address(url) == expected


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis+sentinel://:secret@a:1", "need /service/db"),
        ("redis+sentinel://:secret@a:1/s/x", "a number as db"),
        ("redis+sentinel://:secret@a:x/s", "host:port"),
        ("redis+sentinel://:secret@a:1,/s", "host:port"),
        ("redis+sentinel://:secret@a:70000/s", "host:port"),
        ("redis+sentinel://:secret@/s", "host:port"),
        ("redis+sentinel://:secret@a:1/s?ssl_ca_certs=x", "unknown option 'ssl_ca_certs'"),
        ("redis+sentinel://:secret@a:1/s?sentinel_pasword=x", "unknown option 'sentinel_pasword'"),
    ],
)
def test_an_invalid_address_is_refused_without_its_password(url: str, why: str) -> None:
    """Logs are read by more people than settings."""
    with pytest.raises(ValueError, match=why) as refused:
        sentinel_address(url)
    assert "secret" not in str(refused.value)


def test_other_addresses_are_redis_pys() -> None:
    """One server needs no Sentinel."""
    assert not is_sentinel("rediss://h:1/0")
    assert not is_sentinel("unix:///run/redis+sentinel://")
