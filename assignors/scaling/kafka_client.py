"""Creates Kafka clients from a user's settings."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from assignors.clients.property_names import CLIENT
from assignors.errors import ScalingFileError

Client = TypeVar("Client")


def made(kind: Callable[[dict[str, Any]], Client], kafka: Mapping[str, Any]) -> Client:
    """Create a client; it connects later.

    Raises:
        ScalingFileError: a property that librdkafka does not know, or a value that it refuses.
    """
    try:
        return kind({"client.id": f"{CLIENT}.autoscale", **kafka})
    except KafkaException as error:
        raise ScalingFileError(f"properties of the Kafka client: {error.args[0].str()}") from error
