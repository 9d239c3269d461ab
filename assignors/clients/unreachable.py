"""Why brokers do not answer: a refused password and a wrong certificate look like silence to who only waits."""

import re
import time
from collections.abc import Mapping
from typing import Any, Final

_ASK_S: Final = 5.0
_TRY_S: Final = 0.5
# How long it took: another sentence each time would be another problem each time.
_TIMES: Final = re.compile(r" \(after \d+ms in state [^)]*\)")
_PROTOCOL: Final = "security.protocol"


def why_unreachable(kafka: Mapping[str, Any]) -> str:
    """Ask librdkafka, which tells a refused password, a certificate and a wrong protocol from silence.

    Args:
        kafka: librdkafka's properties, `bootstrap.servers` at least.

    Returns:
        One clause, empty where the brokers answer.
    """
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 -- asked only when something is wrong
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 -- as above

    said: list[str] = []
    protocol = str(kafka.get(_PROTOCOL, "PLAINTEXT"))

    def hear(error: Any) -> None:  # noqa: ANN401 -- confluent-kafka has no types
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 -- which tells nothing
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
    # Of a broker that hangs up at once librdkafka tells only its log.
    return said[0] if said else f"no broker, or none that speaks security.protocol={protocol}"


def _settled(text: str, protocol: str) -> str:
    # Where a broker hangs up within the handshake, it is chance which of librdkafka's sentences comes.
    if "SSL" in protocol.upper() and "Disconnected" in text:
        return f"{text.partition(': ')[0]}: Disconnected, as by a listener without TLS"
    return text
