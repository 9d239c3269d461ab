"""One configuration for both clients: librdkafka's properties under kafka-python's names."""

import re
from collections.abc import Mapping
from typing import Any, Final

from assignors.clients.librdkafka_values import TRUE, text
from assignors.settings.mistyped_names import proposal

CLIENT: Final = "azimuth"
"""`client.id` of a command's clients, unless the user sets one; agents add their names."""
KAFKA_PYTHON_NAMES: Final[Mapping[str, str]] = {
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "socket.timeout.ms": "request_timeout_ms",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "topic.metadata.refresh.interval.ms": "metadata_max_age_ms",
}
"""Names that differ from librdkafka's name with underscores for dots."""
_UNKNOWN: Final = re.compile(r'No such configuration property: "([^"]+)"')
_FILE: Final = re.compile(r"ssl\.\w+\.location")
_NUMBERS: Final = (".ms", ".bytes", ".records", ".connection")


def kafka_python_settings(kafka: Mapping[str, Any]) -> dict[str, Any]:
    """Translate properties of librdkafka or of Kafka for kafka-python's consumer; it leaves out unknown ones.

    Args:
        kafka: at least `bootstrap.servers`.

    Raises:
        MembershipError: a certificate, a key or a keystore cannot be read.
        ValueError: a value is not a number.
    """
    from kafka import KafkaConsumer  # noqa: PLC0415 -- tasks have no such client

    from assignors.clients.kafka_python_security import kafka_python_security  # noqa: PLC0415 -- tasks have no such client

    config: dict[str, Any] = {}
    for name, value in kafka.items():
        known = KAFKA_PYTHON_NAMES.get(name, name.replace(".", "_"))
        if known in KafkaConsumer.DEFAULT_CONFIG:
            config[known] = _typed(name, value, KafkaConsumer.DEFAULT_CONFIG[known])
    if "security_protocol" in config:
        config["security_protocol"] = config["security_protocol"].upper()
    config["bootstrap_servers"] = bootstrap_list(str(kafka["bootstrap.servers"]))
    return config | kafka_python_security(kafka)


def _typed(name: str, value: Any, default: object) -> Any:  # noqa: ANN401 -- of any setting
    """Return a value with the type that kafka-python needs: it sends no numbers as names and passwords."""
    if name.endswith(_NUMBERS):
        try:
            return int(float(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{name}={value!r}, need a whole number") from error
    if isinstance(default, bool):
        return text(value).lower() in TRUE
    return text(value) if isinstance(value, str | int | float) else value


def bootstrap_list(servers: str) -> list[str]:
    """Return the addresses for kafka-python, as librdkafka reads them: without spaces, and without a path after them.

    Args:
        servers: `host:port` or `security://host:port` by commas.
    """
    found = []
    for one in servers.split(","):
        scheme, mark, rest = one.strip().rpartition("://")
        if address := rest.partition("/")[0].strip():
            found.append(scheme + mark + address)
    return found


def refused_property(error: Exception, kafka: Mapping[str, Any]) -> str:
    """Return librdkafka's message about a property that it refuses, with the nearest name of a mistyped one.

    Args:
        error: the KafkaException of a client's constructor.
        kafka: its properties; the message shows the value of one that names a file.
    """
    from kafka import KafkaConsumer  # noqa: PLC0415 -- tasks have no such client

    text = str(error.args[0].str())
    if (unknown := _UNKNOWN.search(text)) is None:
        return _FILE.sub(lambda found: f"{found[0]}={kafka.get(found[0])}", text)
    known = {*KAFKA_PYTHON_NAMES, *(name.replace("_", ".") for name in KafkaConsumer.DEFAULT_CONFIG)}
    proposed = proposal(unknown[1], known - {unknown[1]})
    return f"{text}; {proposed}" if proposed else text
