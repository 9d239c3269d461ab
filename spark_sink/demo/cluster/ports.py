"""Free ports for the brokers."""

import random
import socket

from spark_sink.errors import ClusterError

# Below the range from which the kernel takes the ports of outgoing connections: a killed broker's
# port must still be free when it comes back.
_LOWEST, _HIGHEST = 20_000, 32_000


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose_ports(count: int) -> list[int]:
    """So many free ports, at random, so that two clusters started together do not meet."""
    candidates = iter(random.sample(range(_LOWEST, _HIGHEST), 2000))
    return [next(port for port in candidates if is_free(port)) for _ in range(count)]


def ports_from(first: int, count: int) -> list[int]:
    """The ports first, first + 1, ...

    Raises:
        ClusterError: one of them is taken.
    """
    ports = list(range(first, first + count))
    for port in ports:
        if not is_free(port):
            raise ClusterError(f"port {port} is taken: give another --port, or none to have free ones chosen")
    return ports
