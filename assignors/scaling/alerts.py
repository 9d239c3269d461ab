"""Sends alerts to the log, a webhook or a Redis channel. A failing hook is logged, and no decision waits for a hook."""

import json
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from assignors.clients.masked_addresses import shown
from assignors.clients.redis_addresses import REDIS_SCHEMES, close_redis, connect_redis, is_sentinel
from assignors.errors import ScalingFileError

_log = structlog.get_logger("azimuth.scaling")
_TIMEOUT_S = 5.0
_CLOSE_S = _TIMEOUT_S + 1.0  # enough for a message in flight to arrive or fail
_MOST = 1000

Alert = Callable[[Mapping[str, Any]], None]
"""Gets `{"topic", "group", "kind", "text"}`, and `"topics"` if one text is about many topics.

It may raise, and is called again for the next alert. An `Outbox` calls it from a thread, one message at a time."""


class Outbox:
    """Calls each hook in a separate thread, so that a hook that hangs delays neither the caller nor another hook.

    Contract:
    * `tell` returns immediately. A hook gets messages in order, each once; its exceptions are logged.
    * While `_MOST` messages wait for a hook, its new messages are dropped; the log reports when this begins and ends.
    * `close` gives hooks `_CLOSE_S` in total to take waiting messages, and logs the rest; no thread outlives the
      process.
    """

    def __init__(self, alerts: Sequence[Alert] = ()) -> None:
        """Prepare; a thread starts with the first message."""
        # The log needs no thread: it never waits, and lines of two threads could be mixed.
        self._logs = any(alert is _say for alert in alerts)
        self._queues = [_Queue(alert) for alert in alerts if alert is not _say]

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message to every hook."""
        if self._logs:
            _say(message)
        for queue in self._queues:
            queue.put(message)

    def close(self) -> None:
        """End the threads; later messages are dropped."""
        until = time.monotonic() + _CLOSE_S
        for queue in self._queues:
            queue.end()
        for queue in self._queues:
            queue.join(max(0.0, until - time.monotonic()))


class _Queue:
    """Messages for one hook, and the thread that delivers them."""

    def __init__(self, alert: Alert) -> None:
        self._alert = alert
        self._changed = threading.Condition()
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._dropped = 0
        self._ended = False
        self._thread = threading.Thread(target=self._deliver, name="azimuth-alerts", daemon=True)

    def put(self, message: Mapping[str, Any]) -> None:
        with self._changed:
            if self._ended or len(self._waiting) >= _MOST:
                self._drop()
                return
            if self._dropped:
                _log.warning("alerts were dropped", dropped=self._dropped)
                self._dropped = 0
            self._waiting.append(message)
            self._changed.notify()
            if self._thread.ident is None:
                self._thread.start()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def join(self, timeout_s: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        with self._changed:
            lost = self._dropped + len(self._waiting) + self._thread.is_alive()
            self._waiting.clear()
        if lost:
            _log.warning("alerts were not delivered: a hook does not answer", alerts=lost)

    def _drop(self) -> None:
        if not self._dropped:
            _log.warning("alerts are dropped: a hook does not keep up", waiting=len(self._waiting))
        self._dropped += 1

    def _deliver(self) -> None:
        while (message := self._next()) is not None:
            try:
                self._alert(message)
            except Exception as error:  # noqa: BLE001 -- a user's hook may raise any error, and the next alert must be sent
                _log.warning("an alert was not delivered", reason=str(error), **message)

    def _next(self) -> Mapping[str, Any] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            return self._waiting.popleft() if self._waiting else None


def alert_hooks(addresses: Sequence[str]) -> list[Alert]:
    """Create hooks: `log`, `http(s)://...` (POST of JSON), `redis://host/db?channel=name` (PUBLISH of JSON).

    Raises:
        ScalingFileError: an address of an unknown kind, or a Redis address without a channel.
    """
    return [_hook(address) for address in addresses]


def _hook(address: str) -> Alert:
    try:
        # Without the hosts of Sentinels: newer versions of Python refuse brackets after a comma.
        parts = urllib.parse.urlsplit(address if not is_sentinel(address) else address.partition("://")[0] + "://")
    except ValueError as error:
        raise ScalingFileError(f"alert {_named(address)!r}: {error}") from error
    if address == "log":
        return _say
    if parts.scheme in {"http", "https"}:
        return lambda message: _post(address, message)
    place, _, query = address.partition("#")[0].partition("?")
    channel = urllib.parse.parse_qs(query).get("channel", [""])[0]
    if parts.scheme in REDIS_SCHEMES and channel:
        others = [one for one in urllib.parse.parse_qsl(query) if one[0] != "channel"]
        server = f"{place}?{urllib.parse.urlencode(others)}" if others else place
        return lambda message: _publish(server, channel, message)
    raise ScalingFileError(f"alert {_named(address)!r}: need 'log', an http address, or redis://host/db?channel=name")


def _named(address: str) -> str:
    """Return an address without secrets; the path of a webhook counts as one."""
    return re.sub(r"(://[^/]*/).+", r"\1...", shown(address))


def _say(message: Mapping[str, Any]) -> None:
    _log.warning(message["text"], kind=message["kind"], topic=message["topic"])


def _post(address: str, message: Mapping[str, Any]) -> None:
    request = urllib.request.Request(  # noqa: S310 -- the scheme was checked
        address, data=json.dumps(message).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310 -- the scheme was checked
        pass


def _publish(server: str, channel: str, message: Mapping[str, Any]) -> None:
    client = connect_redis(server, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)
    try:
        client.publish(channel, json.dumps(message))
    finally:
        close_redis(client)
