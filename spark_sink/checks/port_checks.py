"""The question about a port that the process serves: whether it is free on this machine."""

import socket

from spark_sink.checks.findings import Check
from spark_sink.errors import OptionError


def port_checks(port: int | None, setting: str, host: str = "0.0.0.0") -> list[Check]:  # noqa: S104 -- as the server
    """Return the question about a port, if there is one; every port is free if 0 asks for any.

    Args:
        port: 0 for a free one, None for none.
        setting: the setting that names it, for messages.
        host: address that the server binds.
    """
    if not port:
        return []
    return [Check(subject="port", place=f"{setting} {port}", ask=lambda: _free(host, port, setting))]


def _free(host: str, port: int, setting: str) -> str:
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a closed port is free at once
            probe.bind((host, port))
    except OSError as error:
        raise OptionError(f"{setting} {port}: {error.strerror or error}; name another") from error
    return f"{setting} {port}: free"
