"""Finds out why brokers do not answer: to a client that only waits, a refused password looks like silence."""

import re
import time
from collections.abc import Mapping
from typing import Any, Final

_ASK_S: Final = 5.0
_TRY_S: Final = 0.5
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
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 -- needed only after an error
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 -- as above

    said: list[str] = []
    protocol = str(kafka.get(_PROTOCOL, "PLAINTEXT"))

    def hear(error: Any) -> None:  # noqa: ANN401 -- confluent-kafka has no types
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 -- it gives no reason
            said.append(_settled(_TIMES.sub("", " ".join(str(error.str()).split())), protocol))

    config: dict[str, Any] = {**kafka, "error_cb": hear, "log_level": 0}
    try:
        client = AdminClient(config)
    except KafkaException as error:
        return str(error.args[0].str())
    until = time.monotonic() + _ASK_S
    while not said and time.monotonic() < until:
        try:
            client.list_topics(timeout=_TRY_S)
        except KafkaException:
            client.poll(0)
        else:
            return ""
    # If a broker closes the connection at once, librdkafka reports it only in its log.
    return said[0] if said else f"no broker, or none that speaks security.protocol={protocol}"


def _settled(text: str, protocol: str) -> str:
    # If a broker closes the connection during the handshake, librdkafka's message varies.
    if "SSL" in protocol.upper() and "Disconnected" in text:
        return f"{text.partition(': ')[0]}: Disconnected, as by a listener without TLS"
    return text
