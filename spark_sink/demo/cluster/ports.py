"""Free ports for the brokers."""

import random
import socket

from spark_sink.errors import ClusterError

# Below the kernel's range of ports for outgoing connections: the port of a killed broker must still be free at its
# restart.
_LOWEST, _HIGHEST = 20_000, 32_000


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose_ports(count: int) -> list[int]:
    """Choose free ports at random, so that two clusters started together do not collide."""
    candidates = iter(random.sample(range(_LOWEST, _HIGHEST), 2000))
    return [next(port for port in candidates if is_free(port)) for _ in range(count)]


def ports_from(first: int, count: int) -> list[int]:
    """Return the ports first, first + 1, ...

    Raises:
        ClusterError: one of them is in use.
    """
    ports = list(range(first, first + count))
    for port in ports:
        if not is_free(port):
            raise ClusterError(f"port {port} is taken: give another --port, or none to have free ones chosen")
    return ports
