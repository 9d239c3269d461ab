"""One configuration for both clients: librdkafka's properties under kafka-python's names."""

from collections.abc import Mapping
from typing import Any, Final

KAFKA_PYTHON_NAMES: Final[Mapping[str, str]] = {
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
_NUMBERS: Final = (".ms", ".bytes", ".records", ".connection")


def kafka_python_settings(kafka: Mapping[str, Any]) -> dict[str, Any]:
    """Translate properties of librdkafka or of Kafka for kafka-python's consumer; it leaves out unknown ones.

    Args:
        kafka: at least `bootstrap.servers`.
    """
    from kafka import KafkaConsumer  # noqa: PLC0415 -- tasks need the names and have no such client

    config: dict[str, Any] = {}
    for name, value in kafka.items():
        known = KAFKA_PYTHON_NAMES.get(name, name.replace(".", "_"))
        if known in KafkaConsumer.DEFAULT_CONFIG:
            config[known] = int(value) if name.endswith(_NUMBERS) else value
    if "security_protocol" in config:
        config["security_protocol"] = str(config["security_protocol"]).upper()
    config["bootstrap_servers"] = str(kafka["bootstrap.servers"]).split(",")
    return config
