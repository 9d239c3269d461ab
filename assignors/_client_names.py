"""One configuration for both clients: what kafka-python calls librdkafka's properties."""

from collections.abc import Mapping
from typing import Final

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
"""Names that are not librdkafka's own with underscores for dots."""
