"""A cluster's metadata of a source's topics: names from any broker, ids and partitions through the controller.

The two requests fail independently. While the controller is away no topic can be described, although every broker still
lists the names. A failed description gives no information, so the known data of the topic stay. A name that is not
listed counts as deleted after two answers some time apart, because a broker that has just started lists too few.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from assignors.clients.silent_brokers import broker_addresses, list_cluster
from assignors.clients.unreachable_causes import why_unreachable
from assignors.errors import FleetError
from assignors.fleet.fleet_source import Source
from assignors.fleet.fleet_topic import FleetTopic

TIMEOUT_S: Final = 5.0
ABSENT_S: Final = 1.0
_NAMED: Final = 3
_UNAVAILABLE: Final = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001 -- names of librdkafka's own errors begin with an underscore
        KafkaError._TRANSPORT,  # noqa: SLF001 -- names of librdkafka's own errors begin with an underscore
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 -- names of librdkafka's own errors begin with an underscore
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NOT_CONTROLLER,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The last metadata of a cluster.

    Attributes:
        cluster: its id; empty before the first answer.
        topics: the selected topics, including those whose description or absence is not certain yet.
        problems: one sentence each; while a cluster does not answer, the known topics stay.
        answers: whether a broker answered.
        whole: whether the answer covers all selected topics; else a topic that is not in `topics` may still exist.
        brokers: addresses of the cluster's brokers; they do not count when answers are compared.
        absent: topics that the last answers did not list, with the time of the first such answer (monotonic clock).
    """

    cluster: str = ""
    topics: tuple[FleetTopic, ...] = ()
    problems: tuple[str, ...] = ()
    answers: bool = True
    whole: bool = True
    absent: Mapping[str, float] = field(default_factory=dict)
    brokers: tuple[str, ...] = field(default=(), compare=False)

    @property
    def looked(self) -> bool:
        """Whether there was a request to the cluster."""
        return bool(self.cluster or self.problems)

    @property
    def known(self) -> bool:
        """Whether topics of the cluster are known; without a controller a first answer describes none of them."""
        return bool(self.cluster) and (self.whole or bool(self.topics))

    @property
    def ids(self) -> dict[str, str]:
        """Ids by name."""
        return {topic.name: topic.id for topic in self.topics}


def sight(admin: AdminClient, source: Source, before: Sighting | None = None) -> Sighting:
    """Request the topics of a source from a cluster.

    Args:
        admin: client of the cluster.
        source: selects the topics.
        before: the last answer, which stays for topics without a new answer.

    Raises:
        FleetError: no broker answers, or the request is refused.
    """
    try:
        metadata = list_cluster(admin, TIMEOUT_S)
        cluster, names = str(metadata.cluster_id), list(metadata.topics)
        wanted = source.wanted(names)
        described = admin.describe_topics(TopicCollection(wanted), request_timeout=TIMEOUT_S) if wanted else {}
    except KafkaException as error:
        servers = source.kafka["bootstrap.servers"]
        why = why_unreachable(source.kafka) or error.args[0].str()
        raise FleetError(f"source {source.name!r}: no broker of {servers} answers ({why})") from error
    known = {topic.name: topic for topic in before.topics} if before and before.cluster == cluster else {}
    found: dict[str, FleetTopic] = {}
    failed: dict[str, str] = {}
    for name, answer in described.items():
        try:
            said = _described(answer)
        except (KafkaException, TimeoutError) as error:
            failed[name] = _reason(error)
        else:
            if said is not None:
                topic = FleetTopic(cluster, str(said.topic_id), name, source.name, len(said.partitions))
                found[name] = replace(topic, zones=_zones(said, known.get(name)))
    kept = {name: known[name] for name in failed if name in known}
    now = time.monotonic()
    first = before.absent if before else {}
    absent = {name: first.get(name, now) for name in known if name not in found and name not in failed}
    absent = {name: at for name, at in absent.items() if now - at < ABSENT_S or name not in first}
    kept |= {name: known[name] for name in absent}
    return Sighting(
        cluster=cluster,
        topics=tuple(sorted({**found, **kept}.values())),
        problems=(*source.missing([*names, *absent]), *_failures(source, failed, kept)),
        whole=failed.keys() <= kept.keys(),
        absent=absent,
        brokers=broker_addresses(metadata),
    )


def ask_ids(
    admin: AdminClient, source: Source, names: Collection[str], known: Mapping[str, str] | None = None
) -> Callable[[], dict[str, str]]:
    """Request the current ids of topics; returns immediately.

    Args:
        admin: client of the cluster.
        source: source of the topics, for messages.
        names: topics.
        known: the last known ids. They count for topics that a broker lists while the controller is away: without a
            controller no topic is deleted or created.

    Returns:
        A function that waits for the answer: ids by name, without topics that do not exist. It raises FleetError if no
        broker answers, or the request is refused.

    Raises:
        FleetError: the request cannot be sent.
    """

    def refused(error: Exception) -> FleetError:
        return FleetError(f"source {source.name!r}: its topics' ids cannot be asked for: {_reason(error)}")

    try:
        asked = admin.describe_topics(TopicCollection(sorted(names)), request_timeout=TIMEOUT_S)
    except KafkaException as error:
        raise refused(error) from error

    def answer() -> dict[str, str]:
        try:
            return {name: str(said.topic_id) for name, future in asked.items() if (said := _described(future))}
        except (KafkaException, TimeoutError) as error:
            if not _is_unavailable(error) or not set(names) <= (known or {}).keys():
                raise refused(error) from error
            return {name: (known or {})[name] for name in _listed(names)}

    def _listed(names: Collection[str]) -> list[str]:
        try:
            listed = list_cluster(admin, TIMEOUT_S).topics
        except KafkaException as error:
            raise refused(error) from error
        return [name for name in names if name in listed]

    return answer


def _described(answer: Any) -> Any:  # noqa: ANN401 - confluent-kafka has no types
    """Return the description of a topic; None if there is no such topic."""
    try:
        return answer.result(TIMEOUT_S + 1)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def _zones(said: Any, before: FleetTopic | None) -> tuple[str, ...]:  # noqa: ANN401 - confluent-kafka has no types
    """Return the zones of a topic's replicas; the known ones while one of its brokers is away and reports no zone."""
    racks = {node.rack for partition in said.partitions for node in partition.replicas}
    if None in racks or "" in racks:
        return before.zones if before is not None and before.id == str(said.topic_id) else ()
    return tuple(sorted(racks))


def _is_unavailable(error: Exception) -> bool:
    return isinstance(error, TimeoutError) or error.args[0].code() in _UNAVAILABLE


def _reason(error: Exception) -> str:
    if isinstance(error, KafkaException):
        return str(error.args[0].str())
    return f"no answer in {TIMEOUT_S + 1:g} s"


def _failures(source: Source, failed: Mapping[str, str], kept: Collection[str]) -> list[str]:
    """Return one sentence for each reason, for any number of topics."""
    reasons: dict[str, list[str]] = {}
    for name, reason in failed.items():
        reasons.setdefault(reason, []).append(name)
    found = []
    for reason, names in reasons.items():
        some = ", ".join(map(repr, names[:_NAMED])) + (", ..." if len(names) > _NAMED else "")
        stay = f"; {sum(name in kept for name in names)} of them stay as they were known" if names else ""
        found.append(f"source {source.name!r}: {len(names)} topics cannot be described ({some}): {reason}{stay}")
    return found
