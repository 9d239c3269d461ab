"""The topics of one cluster, watched: names, ids and partitions, read again and again in a thread of its own."""

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from assignors.clients.topic_names import topic_name
from assignors.clients.unreachable import why_unreachable
from assignors.errors import FleetError
from assignors.fleet.fleet_topic import FleetTopic

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 5.0
_PROBE_S: Final = 1.5
_CLOSE_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One cluster and what to read from it.

    Attributes:
        name: what the fleet calls the cluster.
        kafka: librdkafka's properties, `bootstrap.servers` at least.
        topics: names.
        pattern: besides, all topics whose whole name matches this regular expression; internal ones never do.

    Raises:
        FleetError: neither topics nor pattern, a name that no topic can have, or a pattern that is no regular
            expression.
    """

    name: str
    kafka: Mapping[str, Any]
    topics: tuple[str, ...] = ()
    pattern: str | None = None

    def __post_init__(self) -> None:
        if not self.topics and self.pattern is None:
            raise FleetError(f"source {self.name!r}: give topics, a pattern, or both")
        for topic in self.topics:
            try:
                topic_name(topic)
            except ValueError as error:
                raise FleetError(f"source {self.name!r}: {error}") from error
        if not self.kafka.get("bootstrap.servers"):
            raise FleetError(f"source {self.name!r}: give bootstrap_servers, host:port by commas")
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise FleetError(
                f"source {self.name!r}: pattern {self.pattern!r} is no regular expression: {error}"
            ) from error

    def wanted(self, names: Sequence[str]) -> list[str]:
        """Those of the cluster's topics that are asked for, sorted."""
        pattern = None if self.pattern is None else re.compile(self.pattern)
        return sorted(
            name
            for name in names
            if name in self.topics or (pattern and not name.startswith("__") and pattern.fullmatch(name))
        )

    def missing(self, names: Sequence[str]) -> list[str]:
        """What is asked for and not there, one sentence each."""
        there = set(names)
        found = [f"source {self.name!r}: there is no topic {name!r}" for name in self.topics if name not in there]
        if self.pattern is not None and not any(
            re.fullmatch(self.pattern, name) for name in names if not name.startswith("__")
        ):
            found.append(f"source {self.name!r}: pattern {self.pattern!r} matches no topic")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a cluster said last.

    Attributes:
        cluster: its id; empty before the first answer.
        topics: those asked for.
        problems: one sentence each; while a cluster does not answer, the topics known before stay.
        answers: whether it did.
    """

    cluster: str = ""
    topics: tuple[FleetTopic, ...] = ()
    problems: tuple[str, ...] = ()
    answers: bool = True

    @property
    def looked(self) -> bool:
        """Whether the cluster was asked at all."""
        return bool(self.cluster or self.problems)


class ClusterWatch:
    """Looks at one cluster in a thread of its own, so that one that does not answer holds up no other.

    Args:
        source: which cluster and topics.
        interval_s: between two looks.
        changed: called after a look that found something else.
    """

    def __init__(self, source: Source, interval_s: float, changed: Callable[[], None]) -> None:
        self.source = source
        self._interval_s = interval_s
        self._changed = changed
        self._seen = Sighting()
        self._look_now = threading.Event()
        self._ended = False
        self._admin: AdminClient | None = None
        self._thread = threading.Thread(target=self._run, name=f"fleet-{source.name}", daemon=True)

    def start(self) -> None:
        """Begin to look.

        Raises:
            FleetError: librdkafka does not know one of the source's properties, or its value has no meaning.
        """
        self._client()
        self._thread.start()

    def seen(self) -> Sighting:
        """What was seen last; never blocks."""
        return self._seen

    def look_now(self) -> None:
        """Look again soon: a topic may have been made anew."""
        self._look_now.set()

    def answers(self) -> bool:
        """Whether a broker of the cluster answers now; waits a second or two."""
        with contextlib.suppress(KafkaException):
            self._client().list_topics(timeout=_PROBE_S)
            return True
        return False

    def ids(self, names: Collection[str]) -> Callable[[], dict[str, str]]:
        """Ask for topics' ids as they are now, as `ask_ids` does."""
        return ask_ids(self._client(), self.source, names)

    def close(self) -> None:
        """End; a look at a cluster that does not answer is not waited for."""
        self._ended = True
        self._look_now.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)

    def look(self) -> Sighting:
        """Ask the cluster once."""
        try:
            self._seen = sight(self._client(), self.source)
        except FleetError as error:
            before = self._seen
            self._seen = Sighting(cluster=before.cluster, topics=before.topics, problems=(str(error),), answers=False)
        return self._seen

    def _run(self) -> None:
        while not self._ended:
            began = time.monotonic()
            before, found = self._seen, self.look()
            for problem in found.problems:
                if problem not in before.problems:
                    log.warning("fleet: %s", problem)
            if before.problems and not found.problems:
                log.info("fleet: source %r: all is well again", self.source.name)
            if found != before:
                self._changed()
            self._look_now.wait(max(0.0, self._interval_s - (time.monotonic() - began)))
            self._look_now.clear()

    def _client(self) -> AdminClient:
        if self._admin is None:
            try:
                self._admin = AdminClient({"log_level": 2, **self.source.kafka})
            except KafkaException as error:
                raise FleetError(f"source {self.source.name!r}: kafka: {error.args[0].str()}") from error
        return self._admin


def ask_ids(admin: AdminClient, source: Source, names: Collection[str]) -> Callable[[], dict[str, str]]:
    """Ask for topics' ids as they are now; returns at once.

    Returns:
        Waits for the answer: ids by name, a topic that is not there has none. It raises FleetError where no broker
        answers, or the question is refused.

    Raises:
        FleetError: the question cannot be asked.
    """

    def refused(error: Exception) -> FleetError:
        return FleetError(f"source {source.name!r}: its topics' ids cannot be asked for: {error}")

    try:
        asked = admin.describe_topics(TopicCollection(sorted(names)), request_timeout=_TIMEOUT_S)
    except KafkaException as error:
        raise refused(error) from error

    def answer() -> dict[str, str]:
        try:
            return {name: str(said.topic_id) for name, future in asked.items() if (said := _described(future))}
        except (KafkaException, TimeoutError) as error:
            raise refused(error) from error

    return answer


def _described(answer: Any) -> Any:  # noqa: ANN401 - confluent-kafka has no types
    try:
        return answer.result(_TIMEOUT_S + 1)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def sight(admin: AdminClient, source: Source) -> Sighting:
    """Ask a cluster for the topics of a source.

    Raises:
        FleetError: no broker answers, or the question is refused.
    """
    try:
        metadata = admin.list_topics(timeout=_TIMEOUT_S)
        cluster, names = str(metadata.cluster_id), list(metadata.topics)
        wanted = source.wanted(names)
        described = admin.describe_topics(TopicCollection(wanted), request_timeout=_TIMEOUT_S) if wanted else {}
    except KafkaException as error:
        servers = source.kafka["bootstrap.servers"]
        why = why_unreachable(source.kafka) or error.args[0].str()
        raise FleetError(f"source {source.name!r}: no broker of {servers} answers ({why})") from error
    topics, problems = [], source.missing(names)
    for name, answer in described.items():
        try:
            said = answer.result(_TIMEOUT_S + 5)
        except (KafkaException, TimeoutError) as error:
            problems.append(f"source {source.name!r}: topic {name!r} cannot be described: {error}")
            continue
        topics.append(FleetTopic(cluster, str(said.topic_id), name, source.name, len(said.partitions)))
    return Sighting(cluster=cluster, topics=tuple(sorted(topics)), problems=tuple(problems))
