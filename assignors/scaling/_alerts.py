"""Who is told: the log, a webhook, a Redis channel. A hook that fails is logged, and nothing waits for it long."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from assignors._errors import ScalingFileError

_log = structlog.get_logger("azimuth.scaling")
_TIMEOUT_S = 5.0

Alert = Callable[[Mapping[str, Any]], None]
"""Is given `{"topic", "group", "kind", "text"}`, and `"topics"` where one text stands for many of them.

It may raise, and is called again for the next alert."""


def hooks(addresses: Sequence[str]) -> list[Alert]:
    """The hooks of addresses: `log`, `http(s)://...` (POST of JSON), `redis://host/db?channel=name` (PUBLISH of JSON).

    Raises:
        ScalingFileError: an address of no known kind, or a Redis address without a channel.
    """
    return [_hook(address) for address in addresses]


def tell(alerts: Sequence[Alert], message: Mapping[str, Any]) -> None:
    """Call every hook; none keeps another one from being called."""
    for alert in alerts:
        try:
            alert(message)
        except Exception as error:  # noqa: BLE001 -- a hook is a user's, and an evaluation must go on
            _log.warning("an alert was not delivered", reason=str(error), **message)


def _hook(address: str) -> Alert:
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError as error:
        raise ScalingFileError(f"alert {address!r}: {error}") from error
    if address == "log":
        return lambda message: _log.warning(message["text"], kind=message["kind"], topic=message["topic"])
    if parts.scheme in {"http", "https"}:
        return lambda message: _post(address, message)
    channel = urllib.parse.parse_qs(parts.query).get("channel", [""])[0]
    if parts.scheme in {"redis", "rediss"} and channel:
        server = urllib.parse.urlunsplit(parts._replace(query=""))
        return lambda message: _publish(server, channel, message)
    raise ScalingFileError(f"alert {address!r}: need 'log', an http address, or redis://host/db?channel=name")


def _post(address: str, message: Mapping[str, Any]) -> None:
    request = urllib.request.Request(  # noqa: S310 -- the scheme was looked at
        address, data=json.dumps(message).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310 -- as above
        pass


def _publish(server: str, channel: str, message: Mapping[str, Any]) -> None:
    import redis  # noqa: PLC0415 -- an extra

    with redis.Redis.from_url(server, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S) as client:
        client.publish(channel, json.dumps(message))
