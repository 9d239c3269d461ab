"""Creates confluent-kafka's clients from a user's properties."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from assignors.clients.kafka_python_names import CLIENT
from assignors.errors import AssignorError

Client = TypeVar("Client")


def made(
    kind: Callable[[dict[str, Any]], Client], kafka: Mapping[str, Any], *, client: str, refusal: type[AssignorError]
) -> Client:
    """Create a client; it connects later.

    Args:
        kind: its class.
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        client: end of its `client.id`, unless the properties have one.
        refusal: raised if librdkafka refuses a property.

    Raises:
        AssignorError: the class `refusal`: a property that librdkafka does not know, or a value that it refuses.
    """
    try:
        return kind({"client.id": f"{CLIENT}.{client}", **kafka})
    except KafkaException as error:
        raise refusal(f"properties of the Kafka client: {error.args[0].str()}") from error
