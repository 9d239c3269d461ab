"""The decoders of a writer's topics: the first ones, and later those of newer schemas, which a thread reads."""

import queue
import threading
import time
from dataclasses import replace

import structlog

from spark_sink.errors import FetchError
from spark_sink.formats import Decoder
from spark_sink.options.value_decoders import make_value_decoder
from spark_sink.options.value_format import TOPIC, ValueFormat

EVERY_S = 60.0
_log = structlog.get_logger("azimuth.registry")


class TopicDecoders:
    """The decoders of one writer; each subject's is created at its first use. Any thread may call.

    Args:
        value: the format. `{topic}` in its subject stands for the topic.
    """

    def __init__(self, value: ValueFormat) -> None:
        self._value = value
        self._known: dict[str | None, Decoder | None] = {}
        self._latest: LatestSchemas | None = None
        self._lock = threading.Lock()

    def of(self, topic: str) -> Decoder | None:
        """Return the first decoder of a topic; None for the raw format.

        Raises:
            OptionError, FetchError: as `make_value_decoder`; the next call tries again.
        """
        subject = self._subject(topic)
        with self._lock:
            if subject not in self._known:
                self._known[subject] = make_value_decoder(replace(self._value, subject=subject))
            return self._known[subject]

    def newest(self, topic: str) -> Decoder | None:
        """Return the decoder of the newest schema of a topic's subject that was read; None if none was read yet.

        Unlike `of`, this returns immediately: a thread asks the registry once a minute.
        """
        subject = self._subject(topic)
        if subject is None:
            return None
        with self._lock:
            self._latest = self._latest or LatestSchemas(self._value)
        return self._latest.newest(subject)

    def _subject(self, topic: str) -> str | None:
        return None if self._value.subject is None else self._value.subject.replace(TOPIC, topic)


class LatestSchemas:
    """The newest schemas of subjects, as decoders; a thread of its own asks the registry, each subject once a minute.

    Contract:
    * No call waits for the registry. While it does not answer, no decoder is newer than those before.
    * Any thread may call.

    Args:
        value: the format of the values, Avro or Protobuf.
    """

    def __init__(self, value: ValueFormat) -> None:
        # Imported here, because the raw format needs no library of the others.
        from spark_sink.formats import Registry

        self._value = value
        self._registry = Registry(value.registry, serialized=value.name == "protobuf")
        self._asked_s: dict[str, float] = {}
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._seen: dict[str, object] = {}
        self._decoders: dict[str, Decoder] = {}
        self._failing: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def newest(self, subject: str) -> Decoder | None:
        """Return the decoder of the newest schema that was read; None before the first answer. Returns immediately."""
        with self._lock:
            now = time.monotonic()
            if now - self._asked_s.setdefault(subject, now) >= EVERY_S:
                self._asked_s[subject] = float("inf")  # until it is answered
                self._waiting.put(subject)
            if not self._waiting.empty() and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._ask, name="azimuth-registry", daemon=True)
                self._thread.start()
        return self._decoders.get(subject)

    def _ask(self) -> None:
        while not self._waiting.empty():
            subject = self._waiting.get()
            try:
                self._read(subject)
            except Exception as error:  # noqa: BLE001 -- a schema that no library can read has any error
                self._report(subject, error)
            else:
                self._failing -= {subject, ""}
            finally:
                with self._lock:
                    self._asked_s[subject] = time.monotonic()

    def _read(self, subject: str) -> None:
        latest = self._registry.latest(subject)
        if latest is None or latest == self._seen.get(subject):
            return
        made = make_value_decoder(replace(self._value, subject=subject))
        if made is not None:
            self._decoders[subject] = made
        self._seen[subject] = latest

    def _report(self, subject: str, error: Exception) -> None:
        """Log the first error of a subject; a registry that does not answer is one error for all of them."""
        place = "" if isinstance(error, FetchError) else subject
        if place not in self._failing:
            self._failing.add(place)
            _log.warning("subject %s: its latest schema was not read: %s", subject, error)
