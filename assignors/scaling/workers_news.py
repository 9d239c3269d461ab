"""News of the workers topic through Redis: followers read a change at once instead of at their next look.

A message says only that the topic has changed; the numbers are on the topic alone. So a lost, late or foreign message
costs at most the interval of a look, and Redis may be away at any time.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, Final, Self

from assignors.clients.masked_addresses import shown
from assignors.clients.redis_addresses import REDIS_ADDRESSES, close_redis, connect_redis
from assignors.errors import ScalingFileError

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 1.0
_PAUSES_S: Final = (0.2, 1.0, 5.0)
_CHANNEL: Final = "azimuth:news:"


def news_channel(topic: str) -> str:
    """Return the channel of a workers topic."""
    return f"{_CHANNEL}{topic}"


class WorkersNews:
    """Notifies followers that the workers topic has changed; raises nothing if Redis is unavailable.

    Args:
        url: in redis-py's format, or with Sentinels as `sentinel_address` reads it.
        topic: the workers topic.

    Raises:
        ScalingFileError: redis-py is missing, or the address is invalid.
    """

    def __init__(self, url: str, topic: str) -> None:
        self._address, self._channel = shown(url), news_channel(topic)
        self._client = _connected(url)
        self._away = False

    def tell(self) -> None:
        """Send a message; log once while Redis does not answer."""
        try:
            self._client.publish(self._channel, "changed")
        except Exception as error:  # noqa: BLE001 -- redis-py's errors, and those of sockets and Sentinels
            if not self._away:
                text = "news of the workers topic: Redis at %s: %s; followers look by themselves"
                log.warning(text, self._address, error)
            self._away = True
        else:
            self._away = False

    def close(self) -> None:
        """Close the connection."""
        close_redis(self._client)


class NewsListener:
    """Calls a function at each message, in a thread of its own that never raises.

    It also calls the function after each connection, because messages before it are lost.

    Args:
        url: as for `WorkersNews`.
        topic: the workers topic.
        on_change: called in the thread; returns quickly.

    Raises:
        ScalingFileError: redis-py is missing, or the address is invalid.
    """

    def __init__(self, url: str, topic: str, on_change: Callable[[], None]) -> None:
        self._address, self._channel, self._on_change = shown(url), news_channel(topic), on_change
        self._client = _connected(url)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workers-news", daemon=True)

    def start(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End; waits at most for a moment."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(2 * _TIMEOUT_S)
        close_redis(self._client)

    def _run(self) -> None:
        failures, said = 0, ""
        while not self._ended.is_set():
            try:
                with self._client.pubsub(ignore_subscribe_messages=False) as channel:
                    channel.subscribe(self._channel)
                    while not self._ended.is_set():
                        if channel.get_message(timeout=_TIMEOUT_S / 2) is not None:  # also that of the subscription
                            failures, said = 0, ""
                            self._on_change()
            except Exception as error:  # noqa: BLE001 -- as in `tell`
                if str(error) != said:
                    said = str(error)
                    text = "news of the workers topic: Redis at %s: %s; numbers arrive some seconds later"
                    log.warning(text, self._address, error)
                self._ended.wait(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])
                failures += 1


def _connected(url: str) -> Any:  # noqa: ANN401 -- redis-py is optional
    try:
        return connect_redis(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, retry=None)
    except ImportError as error:
        raise ScalingFileError("news by Redis need redis-py: pip install 'kafka-azimuth[redis]'") from error
    except ValueError as error:  # its message may contain a part of the password
        raise ScalingFileError(f"{shown(url)!r} is not an address of Redis: need {REDIS_ADDRESSES}") from error
