"""A port that answers scrapes of Prometheus, and nothing else."""

import threading
from http import HTTPStatus
from typing import ClassVar

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from spark_sink.errors import OptionError
from spark_sink.monitoring.live.http_server import HttpServer, ReadOnly


def serve_metrics(port: int, registry: CollectorRegistry) -> HttpServer:
    """Serve the metrics of a registry in a thread, on all addresses; the caller shuts the server down.

    Args:
        port: 0 for a free one.
        registry: the registry of the metrics.

    Raises:
        OptionError: the port is not available.
    """
    try:
        server = HttpServer(("0.0.0.0", port), type("Scraped", (_Scraped,), {"registry": registry}))  # noqa: S104 - Prometheus is elsewhere
    except OSError as error:
        raise OptionError(f"metrics_port {port}: {error.strerror or error}; name another, or none") from error
    threading.Thread(target=server.serve_forever, name="metrics-http", daemon=True).start()
    return server


class _Scraped(ReadOnly):
    registry: ClassVar[CollectorRegistry]

    def get(self, path: str) -> None:
        """Answer a scrape of Prometheus."""
        if path in {"/", "/metrics"}:
            self.answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self.registry))
        else:
            self.answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", "no such page")
