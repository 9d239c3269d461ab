"""Brokers that keep their connections and answer nothing, as a process that is stopped or waits for its disk.

librdkafka requests metadata from the broker that it has used last, and again from the same one until a request is older
than `socket.timeout.ms`. With the default of a minute a single silent broker looks like a cluster that is away.
"""

import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

ANSWER_MS: Final = 4000
"""Time after which a broker without an answer is left for another one, milliseconds."""
_FIRST_S: Final = 0.5
_MOST: Final = 8  # brokers that are asked separately: each needs a client with several threads


def leaving_silent_brokers(kafka: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties for a client of short requests: an answer that is late will not come at all.

    The user's own `socket.timeout.ms` stays.
    """
    return {"socket.timeout.ms": ANSWER_MS, **kafka}


def admin_properties(kafka: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of an AdminClient that is kept; it leaves silent brokers, too.

    Requests such as DescribeTopics go to the controller. While the broker that librdkafka (2.16) takes for the
    controller is away, its threads wake each other and take a whole core until the request times out; not if it holds
    connections to all brokers.
    """
    return {"enable.sparse.connections": False, **leaving_silent_brokers(kafka)}


def list_cluster(admin: AdminClient, timeout_s: float) -> Any:  # noqa: ANN401 -- confluent-kafka's stub has no such type
    """Return the metadata of all topics, from a second broker if the first one is silent.

    Args:
        admin: a client made with `admin_properties`.
        timeout_s: longest wait for each of the two; longer than the client's `socket.timeout.ms`.

    Raises:
        KafkaException: no broker answers.
    """
    try:
        return admin.list_topics(timeout=timeout_s)
    except KafkaException as error:
        # Without a connection the wait ends, too, but with another error.
        if error.args[0].code() != KafkaError._TIMED_OUT:  # noqa: SLF001 -- librdkafka's own error
            raise
    return admin.list_topics(timeout=timeout_s)


def broker_addresses(metadata: Any) -> tuple[str, ...]:  # noqa: ANN401 -- confluent-kafka's stub has no such type
    """Return the addresses of the brokers in a cluster's metadata, sorted."""
    hosts = ((f"[{one.host}]" if ":" in one.host else one.host, one.port) for one in metadata.brokers.values())
    return tuple(sorted(f"{host}:{port}" for host, port in hosts))


def any_broker_answers(
    admin: AdminClient, kafka: Mapping[str, Any], brokers: Collection[str], timeout_s: float
) -> bool:
    """Return whether a broker of a cluster answers now.

    After half a second without an answer each broker is asked over a connection of its own: the client may hold to
    a silent one.

    Args:
        admin: the cluster's client.
        kafka: librdkafka's properties of further clients.
        brokers: known addresses; a few of them are drawn.
        timeout_s: longest wait, seconds.
    """
    until = time.monotonic() + timeout_s
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def ask(client: Callable[[], AdminClient]) -> None:
        answered = False
        with contextlib.suppress(KafkaException):
            client().list_topics(timeout=max(0.1, until - time.monotonic()))
            answered = True
        answers.put(answered)

    def start(client: Callable[[], AdminClient]) -> None:
        threading.Thread(target=ask, args=(client,), name="broker-probe", daemon=True).start()

    start(lambda: admin)
    with contextlib.suppress(queue.Empty):
        if answers.get(timeout=min(_FIRST_S, timeout_s)):
            return True
    drawn = random.sample(sorted(brokers), min(_MOST, len(brokers)))
    for address in drawn:
        start(lambda address=address: AdminClient({**kafka, "bootstrap.servers": address, "log_level": 0}))  # type: ignore[misc]  # a default binds the address
    with contextlib.suppress(queue.Empty):
        while (left := until - time.monotonic()) > 0:
            if answers.get(timeout=left):
                return True
    return False
