"""Creates and removes the demo's topics, with one request each."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata
from confluent_kafka.cimpl import NewTopic

from spark_sink.errors import DemoError

_TIMEOUT_S = 60.0
_ASKED = 30


def create_topics(  # noqa: PLR0913 -- each is named at the call
    bootstrap_servers: str,
    topics: Iterable[str],
    *,
    partitions: int,
    replicas: int,
    config: dict[str, str],
    client: Mapping[str, Any] | None = None,
) -> None:
    """Create the topics that do not exist yet, and return when every partition has a leader.

    Args:
        bootstrap_servers: brokers; each of them must know the leaders.
        topics: names.
        partitions: number per topic.
        replicas: replication factor.
        config: configuration of each topic.
        client: more properties of librdkafka, such as those of TLS and SASL.

    Raises:
        DemoError: a topic could not be created.
    """
    wanted = [
        NewTopic(t, num_partitions=partitions, replication_factor=replicas, config=config) for t in sorted(topics)
    ]
    if not wanted:  # the client takes no empty request
        return
    admin = AdminClient({**(client or {}), "bootstrap.servers": bootstrap_servers})
    for topic, future in admin.create_topics(wanted, operation_timeout=_TIMEOUT_S).items():
        try:
            future.result(timeout=_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue  # another process created it at the same time
            raise DemoError(f"topic {topic} could not be created: {error.args[0].str()}") from error
    _await_leaders([one.strip() for one in bootstrap_servers.split(",")], {t.topic for t in wanted}, client)


def _await_leaders(brokers: Sequence[str], topics: set[str], client: Mapping[str, Any] | None = None) -> None:
    # Every broker is checked: one with old metadata would report partitions without a leader to a producer.
    deadline = time.monotonic() + _TIMEOUT_S
    for broker in brokers:
        while any(_leaderless(broker, topics, client)):
            if time.monotonic() > deadline:
                raise DemoError(f"broker {broker} knows no leaders for the new topics after {_TIMEOUT_S:.0f} s")
            time.sleep(0.1)


def _leaderless(broker: str, topics: set[str], client: Mapping[str, Any] | None) -> Iterator[str]:
    try:
        known = view_of(broker, client).topics
    except KafkaException as error:
        raise DemoError(f"broker {broker} does not answer: {error.args[0].str()}") from error
    for topic in topics:
        found = known.get(topic)
        if found is None or not found.partitions or any(p.leader < 0 for p in found.partitions.values()):
            yield topic


def view_of(broker: str, client: Mapping[str, Any] | None = None, timeout_s: float = 10.0) -> ClusterMetadata:
    """Request the cluster's metadata from one broker.

    librdkafka lets any known broker answer, and names it: this function repeats the request until the right one
    answers. If none of `_ASKED` answers came from that broker (its address is written differently), the last counts.

    Args:
        broker: host:port.
        client: more properties of librdkafka.
        timeout_s: for each request.

    Raises:
        KafkaException: the broker does not answer.
    """
    for _ in range(_ASKED):
        admin = AdminClient({"log_level": 0, **(client or {}), "bootstrap.servers": broker})
        found = admin.list_topics(timeout=timeout_s)
        if str(found.orig_broker_name).startswith(f"{broker}/"):
            break
    return found


def delete_topics(bootstrap_servers: str, topics: Iterable[str]) -> None:
    """Request the deletion of topics; the brokers delete them asynchronously."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in admin.delete_topics(sorted(topics), operation_timeout=_TIMEOUT_S).values():
        future.result(timeout=_TIMEOUT_S)
