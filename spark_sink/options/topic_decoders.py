"""The decoders of a writer's topics."""

from dataclasses import replace
from threading import Lock

from spark_sink.formats import Decoder
from spark_sink.options.latest_schemas import LatestSchemas
from spark_sink.options.value_decoders import make_value_decoder
from spark_sink.options.value_format import TOPIC, ValueFormat


class TopicDecoders:
    """The decoders of one writer; each subject's is created at its first use. Any thread may call.

    Args:
        value: the format. `{topic}` in its subject stands for the topic.
    """

    def __init__(self, value: ValueFormat) -> None:
        self._value = value
        self._known: dict[str | None, Decoder | None] = {}
        self._latest: LatestSchemas | None = None
        self._lock = Lock()

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
