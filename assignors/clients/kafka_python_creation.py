"""Creates kafka-python's clients, which connect in their constructors."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka.net.compat import KafkaNetClient

Client = TypeVar("Client")


def connected(kind: Callable[..., Client], config: Mapping[str, Any]) -> Client:
    """Create a client; if that fails, its connections and threads are closed.

    A failed constructor leaves its thread and sockets open. In a process that tries again while a cluster is away,
    they would accumulate until the process cannot open more files.

    Args:
        kind: KafkaConsumer or KafkaAdminClient.
        config: its settings.

    Raises:
        KafkaError: no broker answers, or a setting is wrong.
        ValueError, TypeError: a setting is wrong.
    """
    made: list[KafkaNetClient] = []

    def client(**settings: Any) -> KafkaNetClient:  # noqa: ANN401 - passed on
        made.append(KafkaNetClient(**settings))
        # kafka-python 3.0 loses this setting on the way: the first request for an unknown topic would create it.
        creates = settings.get("allow_auto_create_topics", True)
        made[-1].cluster.config["allow_auto_create_topics"] = creates
        return made[-1]

    try:
        return kind(**{"kafka_client": client, **config})
    except BaseException:
        for one in made:
            one.close()
        raise
