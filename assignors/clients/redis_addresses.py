"""Connects to Redis by an address: one server, or the current master of a service that Sentinels watch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

REDIS_ADDRESSES: Final = "redis://host:port/db or redis+sentinel://host:port,host:port/service/db"
"""For messages; with `rediss` in the place of `redis` the connections use TLS."""
REDIS_SCHEMES: Final = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")
_SENTINEL: Final = "+sentinel"
_PORT: Final = 26379
_LAST_PORT: Final = 65535
_TLS: Final = frozenset({"ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs"})
_OF_SENTINELS: Final = {"sentinel_username": "username", "sentinel_password": "password"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelAddress:
    """A service that Sentinels watch.

    Attributes:
        sentinels: host and port of each Sentinel.
        service: the name that the Sentinels have for the master.
        database: its number.
        server: options of the connections to the master: user, password, TLS.
        sentinel: the same of the connections to the Sentinels.
    """

    sentinels: tuple[tuple[str, int], ...]
    service: str
    database: int = 0
    server: Mapping[str, Any] = field(default_factory=dict)
    sentinel: Mapping[str, Any] = field(default_factory=dict)


def is_sentinel(url: str) -> bool:
    """Return whether an address names Sentinels."""
    return url.partition("://")[0].lower().endswith(_SENTINEL)


def sentinel_address(url: str) -> SentinelAddress:
    """Read `redis+sentinel://[user:password@]host[:port][,host[:port]]/service[/db][?name=value]`.

    User and password are those of the master. The options are `sentinel_username`, `sentinel_password`, and with TLS
    (`rediss+sentinel`) `ssl_ca_certs`, `ssl_ca_path`, `ssl_certfile`, `ssl_keyfile` and `ssl_cert_reqs`, as in
    redis-py. TLS is for both, the Sentinels and the master.

    Raises:
        ValueError: a host, the service or the number is missing or invalid, or an option is unknown. The message has no
            part of the address but names of options.
    """
    # Not urlsplit: newer versions of Python refuse brackets after a comma.
    scheme, _, rest = url.partition("#")[0].partition("://")
    place, _, query = rest.partition("?")
    netloc, _, path = place.partition("/")
    secure = scheme.lower().startswith("rediss")
    login, _, hosts = netloc.rpartition("@")
    service, _, database = path.strip("/").partition("/")
    if not service or (database and not database.isdecimal()):
        raise ValueError("need /service/db after the hosts, with a number as db")
    given = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(given.keys() - _OF_SENTINELS.keys() - (_TLS if secure else frozenset())):
        raise ValueError(f"unknown option {unknown[0]!r}")
    tls = {"ssl": True, **{name: value for name, value in given.items() if name in _TLS}} if secure else {}
    user, _, password = login.partition(":")
    own = {"username": unquote(user) or None, "password": unquote(password) or None}
    theirs = {_OF_SENTINELS[name]: value for name, value in given.items() if name in _OF_SENTINELS}
    return SentinelAddress(
        sentinels=tuple(_host(one) for one in hosts.split(",")),
        service=unquote(service),
        database=int(database or 0),
        server={**tls, **{name: value for name, value in own.items() if value}},
        sentinel={**tls, **theirs},
    )


def _host(text: str) -> tuple[str, int]:
    host, colon, port = text.strip().rpartition(":") if not text.endswith("]") else (text.strip(), "", "")
    if not colon:
        host, port = host or port, str(_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) <= _LAST_PORT:
        raise ValueError("need host:port of each Sentinel, by commas")
    return host.strip("[]"), int(port)


def connect_redis(url: str, **options: Any) -> Any:  # noqa: ANN401 -- redis-py is an extra
    """Create a client; it connects at the first command. With Sentinels each new connection goes to the current master.

    Args:
        url: an address with one of `REDIS_SCHEMES`.
        options: of redis-py's clients.

    Raises:
        ImportError: redis-py is not installed.
        ValueError: the address is invalid; the message of redis-py may contain a part of the password.
    """
    import redis  # noqa: PLC0415 -- an extra
    from redis.sentinel import Sentinel  # noqa: PLC0415 -- an extra

    if not is_sentinel(url):
        return redis.Redis.from_url(url, **options)
    found = sentinel_address(url)
    timeouts = {name: value for name, value in options.items() if name.startswith("socket_")}
    make: Any = Sentinel  # redis-py's has no types
    sentinel = make(found.sentinels, sentinel_kwargs={**timeouts, **found.sentinel})
    return sentinel.master_for(found.service, db=found.database, **found.server, **options)


def close_redis(client: Any) -> None:  # noqa: ANN401 -- redis-py is an extra
    """Close the connections of a client of `connect_redis`, and those to the Sentinels, which redis-py leaves open."""
    client.close()
    found = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    for one in found.sentinels if found is not None else ():
        one.close()
