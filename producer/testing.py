"""A Kafka cluster inside this process, for tests: librdkafka's mock cluster with racks, leader moves and faults.

It speaks the protocol over real sockets, so both clients run against it unchanged, and a leader moves in milliseconds.
kafka-python needs `api_version=(2, 0), enable_idempotence=False` there.
"""

import ctypes
import errno
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import confluent_kafka
from confluent_kafka import cimpl

_RD_KAFKA_PRODUCER: Final = 0
_TEXT: Final = 512
_BREATH_S: Final = 0.0005

Signature = tuple[Any, Sequence[Any]]
_PTR: Final = ctypes.c_void_p
_FUNCTIONS: Final[Mapping[str, Signature]] = {
    "rd_kafka_conf_new": (_PTR, ()),
    "rd_kafka_conf_set": (ctypes.c_int, (_PTR, ctypes.c_char_p, ctypes.c_char_p, _PTR, ctypes.c_size_t)),
    "rd_kafka_new": (_PTR, (ctypes.c_int, _PTR, _PTR, ctypes.c_size_t)),
    "rd_kafka_destroy": (None, (_PTR,)),
    "rd_kafka_mock_cluster_new": (_PTR, (_PTR, ctypes.c_int)),
    "rd_kafka_mock_cluster_destroy": (None, (_PTR,)),
    "rd_kafka_mock_cluster_bootstraps": (ctypes.c_char_p, (_PTR,)),
    "rd_kafka_mock_set_controller_id": (ctypes.c_int, (_PTR, ctypes.c_int32)),
    "rd_kafka_mock_coordinator_set": (ctypes.c_int, (_PTR, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32)),
    "rd_kafka_mock_broker_set_rack": (ctypes.c_int, (_PTR, ctypes.c_int32, ctypes.c_char_p)),
    "rd_kafka_mock_broker_set_down": (ctypes.c_int, (_PTR, ctypes.c_int32)),
    "rd_kafka_mock_broker_set_up": (ctypes.c_int, (_PTR, ctypes.c_int32)),
    "rd_kafka_mock_broker_set_rtt": (ctypes.c_int, (_PTR, ctypes.c_int32, ctypes.c_int)),
    "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, (_PTR, ctypes.c_int32)),
    "rd_kafka_mock_topic_create": (ctypes.c_int, (_PTR, ctypes.c_char_p, ctypes.c_int, ctypes.c_int)),
    "rd_kafka_mock_push_request_errors_array": (
        None,
        (_PTR, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)),
    ),
    "rd_kafka_mock_clear_request_errors": (None, (_PTR, ctypes.c_int16)),
    "rd_kafka_mock_topic_set_error": (None, (_PTR, ctypes.c_char_p, ctypes.c_int)),
    "rd_kafka_mock_partition_set_leader": (
        ctypes.c_int,
        (_PTR, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32),
    ),
}


def librdkafka() -> ctypes.CDLL:
    """Load confluent-kafka's own librdkafka, not a second copy.

    Raises:
        FileNotFoundError: this build of confluent-kafka has its librdkafka elsewhere.
    """
    bundled = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = sorted(bundled.glob("librdkafka*.so*"))
    # A wheel has the library next to the package; a distribution's build links the system's library.
    library = ctypes.CDLL(str(found[0]) if found else cimpl.__file__)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = list(arguments)
    return library


class MockCluster:
    """Brokers 1 to n, one rack each, in this process.

    Args:
        racks: `broker.rack` per broker, in the order of their ids from 1; None for a broker without one.

    Contract: `close`, or the end of the `with` block, stops it; clients may still run, without their brokers. After it
    every other call raises ValueError.
    """

    def __init__(self, racks: Sequence[str | None] = ("az-a", "az-b", "az-c")) -> None:
        self._library = librdkafka()
        config = self._library.rd_kafka_conf_new()
        text = ctypes.create_string_buffer(_TEXT)
        # log_level 2: the mock reports every broker it takes down as an error of this handle.
        self._library.rd_kafka_conf_set(config, b"log_level", b"2", text, _TEXT)
        self._handle = self._library.rd_kafka_new(_RD_KAFKA_PRODUCER, config, text, _TEXT)
        if not self._handle:
            raise OSError(errno.EIO, text.value.decode())
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._handle, len(racks))
        # Without a controller, a client that requests racks (DescribeCluster goes to the controller) waits forever.
        self._do("rd_kafka_mock_set_controller_id", 1)
        self.racks = dict(enumerate(racks, start=1))
        for broker, rack in self.racks.items():
            if rack is not None:
                self._do("rd_kafka_mock_broker_set_rack", broker, rack.encode())

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the brokers, for clients."""
        found: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._open())
        return found.decode()

    def create(self, topic: str, leaders: Sequence[int | None]) -> None:
        """Create a topic whose partitions are led by these brokers, None for no leader."""
        self._do("rd_kafka_mock_topic_create", topic.encode(), len(leaders), len(self.racks))
        self.lead(topic, leaders)

    def lead(self, topic: str, leaders: Sequence[int | None]) -> None:
        """Move the leaders of a topic; clients detect it as they detect a real move."""
        for partition, leader in enumerate(leaders):
            number = -1 if leader is None else leader
            self._do("rd_kafka_mock_partition_set_leader", topic.encode(), partition, number)

    def refuse(self, topic: str, error: int) -> None:
        """Answer metadata requests for a topic with this error, as a broker does without rights; 0 ends it."""
        self._library.rd_kafka_mock_topic_set_error(self._open(), topic.encode(), error)

    def fail(self, request: int, error: int, times: int = 10_000) -> None:
        """Answer the next requests with this API key with an error, as a broker does without rights; 0 ends it."""
        self._library.rd_kafka_mock_clear_request_errors(self._open(), request)
        if error:
            errors = (ctypes.c_int * times)(*[error] * times)
            self._library.rd_kafka_mock_push_request_errors_array(self._open(), request, times, errors)

    def delay(self, broker: int, milliseconds: int) -> None:
        """Make a broker slow: every answer takes this time."""
        self._do("rd_kafka_mock_broker_set_rtt", broker, milliseconds)

    def wait_for_members(self, milliseconds: int) -> None:
        """Set the time that a new group waits for more members before its first rebalance; 3,000 by default."""
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._open(), milliseconds)

    def down(self, broker: int) -> None:
        """Cut a broker off; the metadata still names it as leader, as before a real controller reacts."""
        self._do("rd_kafka_mock_broker_set_down", broker)

    def up(self, broker: int) -> None:
        """Let a broker answer again."""
        self._do("rd_kafka_mock_broker_set_up", broker)

    def close(self) -> None:
        """End the cluster; may be called twice."""
        if self._cluster:
            self._library.rd_kafka_mock_cluster_destroy(self._cluster)
            self._library.rd_kafka_destroy(self._handle)
            self._cluster = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _open(self) -> Any:  # noqa: ANN401 -- librdkafka's pointer
        if not self._cluster:  # librdkafka would use freed memory
            raise ValueError("this mock cluster is closed: ask and change it before `close` or the end of its `with`")
        return self._cluster

    def _do(self, name: str, *arguments: object) -> None:
        function: Callable[..., int] = getattr(self._library, name)
        # The mock's thread misses the wake-up of a request that closely follows another one, and then sleeps a second.
        time.sleep(_BREATH_S)
        failed = function(self._open(), *arguments)
        if failed:
            raise OSError(errno.EINVAL, f"{name}{arguments}: librdkafka error {failed}")
