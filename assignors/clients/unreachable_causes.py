"""Finds out why brokers do not answer: to a client that only waits, a refused password looks like silence."""

import re
import time
from collections.abc import Mapping
from typing import Any, Final

from assignors.clients.kafka_python_names import CLIENT, refused_property

_ASK_S: Final = 5.0
_TRY_S: Final = 0.5
_SURE_S: Final = 0.9  # a name may have several addresses, of which the first is refused
# The duration in a message is removed, because each different message would count as a new problem.
_TIMES: Final = re.compile(r" \(after \d+ms in state [^)]*\)")
_PROTOCOL: Final = "security.protocol"


def why_unreachable(kafka: Mapping[str, Any]) -> str:
    """Try librdkafka, which distinguishes a refused password, a certificate and a wrong protocol from silence.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.

    Returns:
        One clause, empty if the brokers answer.
    """
    return ask_brokers(kafka, _ASK_S)[1]


def ask_brokers(kafka: Mapping[str, Any], wait_s: float) -> tuple[Any, str]:
    """Request the topics of a cluster.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        wait_s: longest wait.

    Returns:
        The cluster's metadata, and an empty text; or None, and one clause with the reason.
    """
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 -- needed only after an error
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 -- needed only after an error

    said: list[str] = []
    down: list[bool] = []
    protocol = str(kafka.get(_PROTOCOL, "PLAINTEXT"))

    def hear(error: Any) -> None:  # noqa: ANN401 -- confluent-kafka has no types
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 -- it gives no reason
            down.append(True)
        else:
            said.append(_settled(_TIMES.sub("", " ".join(str(error.str()).split())), protocol))

    config: dict[str, Any] = {"client.id": CLIENT, **kafka, "error_cb": hear, "log_level": 0}
    try:
        client = AdminClient(config)
    except KafkaException as error:
        return None, refused_property(error, kafka)
    began, try_s = time.monotonic(), _TRY_S
    while (left_s := began + wait_s - time.monotonic()) > 0:
        try:
            return client.list_topics(timeout=min(try_s, left_s)), ""
        except KafkaException:
            client.poll(0)
        if said and down and time.monotonic() - began > _SURE_S:
            break
        try_s = _TRY_S if down else wait_s  # a slow broker never answers a series of short requests
    # If a broker closes the connection at once, librdkafka reports it only in its log.
    return None, said[0] if said else f"no broker, or none that speaks security.protocol={protocol}"


def _settled(text: str, protocol: str) -> str:
    # If a broker closes the connection during the handshake, librdkafka's message varies.
    if "SSL" in protocol.upper() and "Disconnected" in text:
        return f"{text.partition(': ')[0]}: Disconnected, as by a listener without TLS"
    return text
