"""Leaders and racks read through confluent-kafka."""

import threading
from collections.abc import Collection, Mapping
from time import monotonic
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from assignors.clients import whole_number
from producer.decisions.candidate_partitions_in_zone import Leaders, Racks, Replicas
from producer.decisions.producer_settings import need_number
from producer.errors import MetadataError, PolicyError

# The properties that a second handle needs to reach the same cluster; all others (callbacks, transactions, batching, a
# mock cluster) belong only to the producer.
_CONNECTION = (
    "bootstrap.servers",
    "metadata.broker.list",
    "client.id",
    "client.dns.lookup",
    "broker.address.family",
    "security.protocol",
    "oauth_cb",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "enabled_sasl_mechanisms",
)
_CONNECTION_PREFIXES = ("ssl.", "ssl_", "sasl.", "enable.ssl.", "https.", "socket.", "broker.address.", "reconnect.")

_TIMEOUT_AT_MOST_S = 3_600.0  # the client refuses a longer one
_RACKS_LAST_S = 300.0  # without the client's statistics a broker that returns in another rack is not seen
_KNOWN_AFTER_S = 1.0  # until then other brokers may not know the rack of a broker that has returned


class Lister(Protocol):
    """A handle of confluent-kafka that lists topics: a producer, a consumer, an admin client."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ANN401 - untyped there
        """List topics; this also refreshes the handle's own leaders."""
        ...


def connection(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a producer's configuration that a connection to the cluster needs.

    Args:
        config: configuration for confluent-kafka.

    Returns:
        Configuration for another handle.
    """
    return {
        name: value for name, value in config.items() if name in _CONNECTION or name.startswith(_CONNECTION_PREFIXES)
    }


def read_racks(config: Mapping[str, Any], timeout_s: float) -> dict[int, str | None]:
    """Read the rack of every live broker.

    Args:
        config: configuration of a client of that cluster.
        timeout_s: longest wait, seconds.

    Returns:
        Rack per broker id; None if the broker has none.

    Raises:
        MetadataError: no answer in time, or no right for the request (DESCRIBE on the cluster).
    """
    quiet = {"log_level": 3, **connection(config)}
    try:
        admin = AdminClient(quiet)
        nodes = admin.describe_cluster(request_timeout=timeout_s).result(timeout_s + 1).nodes
    except (KafkaException, TimeoutError) as error:
        raise MetadataError(f"racks of the brokers could not be read: {_text(error)}") from error
    return {node.id: node.rack or None for node in nodes}


def read_leaders(
    client: Lister, topic: str | None, timeout_s: float, replicas: dict[str, Replicas] | None = None
) -> dict[str, tuple[int | None, ...]]:
    """Read the leaders of one topic, or of all.

    Args:
        client: the handle for the request; the answer also refreshes its own leaders.
        topic: one topic, or None for all.
        timeout_s: longest wait, seconds.
        replicas: gets the replicas of each topic, if given.

    Returns:
        Leader per partition and topic, None without a leader and for a partition that the answer leaves out. Topics
        that do not exist or are not allowed are missing.

    Raises:
        MetadataError: no answer in time.
    """
    try:
        found = client.list_topics(topic, timeout_s) if topic is not None else client.list_topics(timeout=timeout_s)
    except KafkaException as error:
        raise MetadataError(f"leaders could not be read: {_text(error)}") from error
    leaders: dict[str, tuple[int | None, ...]] = {}
    for name, metadata in found.topics.items():
        if metadata.partitions and metadata.error is None:
            led = {
                number: partition.leader for number, partition in metadata.partitions.items() if partition.leader >= 0
            }
            numbers = range(max(metadata.partitions) + 1)
            leaders[name] = tuple(led.get(number) for number in numbers)
            if replicas is not None:
                held = {number: tuple(one.replicas) for number, one in metadata.partitions.items()}
                replicas[name] = tuple(held.get(number, ()) for number in numbers)
    return leaders


def read_leaders_of(
    config: Mapping[str, Any],
    topics: Collection[str],
    timeout_s: float,
    replicas: dict[str, Replicas] | None = None,
) -> dict[str, tuple[int | None, ...]]:
    """Read the leaders of some topics in one request, over a separate connection.

    Args:
        config: configuration of a client of that cluster.
        topics: their names, at least one.
        timeout_s: longest wait, seconds.
        replicas: gets the replicas of each topic, if given.

    Returns:
        As `read_leaders`; the producer's own leaders are not refreshed.

    Raises:
        MetadataError: no answer in time.
    """
    leaders: dict[str, tuple[int | None, ...]] = {}
    try:
        admin = AdminClient({"log_level": 0, **connection(config)})  # the producer logs the same faults
        answers = admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=timeout_s)
    except (KafkaException, ValueError) as error:
        raise MetadataError(f"leaders could not be read: {_text(error)}") from error
    for name, answer in answers.items():
        try:
            partitions = answer.result(timeout_s + 1).partitions
        except (KafkaException, TimeoutError) as error:
            if not (isinstance(error, KafkaException) and error.args[0].code() > 0):  # an answer, about this topic
                raise MetadataError(f"leaders could not be read: {_text(error)}") from error
            continue
        led = {one.id: one.leader.id for one in partitions if one.leader is not None and one.leader.id >= 0}
        numbers = range(max((one.id for one in partitions), default=-1) + 1)
        leaders[name] = tuple(led.get(number) for number in numbers)
        if replicas is not None and numbers:
            held = {one.id: tuple(node.id for node in one.replicas) for one in partitions}
            replicas[name] = tuple(held.get(number, ()) for number in numbers)
    return {name: found for name, found in leaders.items() if found}


def _text(error: BaseException) -> str:
    reason = error.args[0] if error.args else None
    return reason.str() if isinstance(reason, KafkaError) else str(error) or type(error).__name__


def _checked(racks: Racks) -> dict[int, str | None]:
    """Check the racks that a user gives: an id in quotes would match no broker, and every record would leave its zone.

    Raises:
        PolicyError: it is not a mapping of numbers.
    """
    if not isinstance(racks, Mapping) or not all(isinstance(broker, int) for broker in racks):
        raise PolicyError(f"racks={racks!r}, need a mapping of broker ids (numbers) to racks: {{1: 'az-a'}}")
    return dict(racks)


class Topology:
    """Leaders and racks of one cluster.

    Racks are read again if a leader's broker is unknown, after `expect_racks`, and every 300 s.

    Attributes:
        has_connection: whether a second handle reaches the cluster: not the mock cluster that a client with
            `test.mock.num.brokers` starts for itself. Its brokers have no racks, so none are read.

    Contract: thread-safe; every reading method may block for `timeout_s`.
    """

    def __init__(self, config: Mapping[str, Any], racks: Racks | None = None, timeout_s: float = 10.0) -> None:
        need_number("metadata_timeout_s", timeout_s, most=_TIMEOUT_AT_MOST_S)
        self._config = config
        self.has_connection = whole_number(config.get("test.mock.num.brokers"), 0) <= 0
        self._given = racks is not None or not self.has_connection
        self._racks: dict[int, str | None] = {} if racks is None else _checked(racks)
        self._racks_read = monotonic()
        self._racks_changed = self._racks_read
        self._lock = threading.RLock()  # a signal handler may call while this thread holds it
        self.timeout_s = timeout_s

    @property
    def reads_racks(self) -> bool:
        """Whether racks are read from the cluster; otherwise the given ones never change."""
        return not self._given

    @property
    def racks(self) -> Racks:
        """Rack per broker id, from the last read."""
        return self._racks

    def leaders(
        self, topics: Collection[str], replicas: dict[str, Replicas] | None = None
    ) -> dict[str, tuple[int | None, ...]]:
        """Read the leaders of some topics and, if a leader is new, the racks; errors as `read_leaders_of`."""
        found = self.leaders_of(topics, self.timeout_s, replicas)
        if self.racks_are_due(found):
            self.read_racks()
        return found

    def leaders_of(
        self, topics: Collection[str], timeout_s: float, replicas: dict[str, Replicas] | None = None
    ) -> dict[str, tuple[int | None, ...]]:
        """Read the leaders of some topics; arguments and errors as `read_leaders_of`."""
        return read_leaders_of(self._config, topics, timeout_s, replicas)

    def racks_are_due(self, leaders: Mapping[str, Leaders]) -> bool:
        """Return whether a leader's rack is unknown, or the racks are old."""
        leading = {leader for led in leaders.values() for leader in led if leader is not None}
        old = monotonic() - self._racks_read > _RACKS_LAST_S or self._racks_read < self._racks_changed
        return not self._given and (not leading <= self._racks.keys() or bool(leaders and (old or not self._racks)))

    def expect_racks(self, since: float) -> None:
        """Expect that a broker returned at this time, seconds of the monotonic clock: it may be in another rack."""
        self._racks_changed = max(self._racks_changed, since + _KNOWN_AFTER_S)

    def read_racks(self, timeout_s: float | None = None) -> None:
        """Read the racks, unless they were given. Brokers that are down keep their last rack.

        Args:
            timeout_s: longest wait, seconds; None for the default of this object.

        Raises:
            MetadataError: no answer in time, or no right for the request; the racks stay unchanged.
        """
        if self._given:
            return
        with self._lock:
            began = monotonic()
            found = read_racks(self._config, self.timeout_s if timeout_s is None else timeout_s)
            self._racks_read = began
            self._racks = {**self._racks, **found}

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use other credentials from the next request on."""
        self._config = {**self._config, "sasl.username": username, "sasl.password": password}
