"""The HTTP endpoints: a page, the status as JSON, metrics and two probes. Read-only."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from spark_sink.monitoring.live.fleet_page import FLEET_PAGE
from spark_sink.monitoring.live.http_credentials import OPEN, Access
from spark_sink.monitoring.live.http_server import ReadOnly, Serving
from spark_sink.monitoring.live.page import PAGE
from spark_sink.monitoring.live.status_metrics import StatusCollector

Status = Callable[[], Mapping[str, Any]]


class LiveServer(Serving):
    """Serves until it is closed.

    | path | content |
    |---|---|
    | `/` | the page |
    | `/status.json` | the current status |
    | `/fleet` | the page of the whole fleet |
    | `/fleet.json` | its topics, readers, lag and rates |
    | `/metrics` | metrics for Prometheus |
    | `/healthz` | 200 while the agent's threads work, else 503: restart it |
    | `/readyz` | 200 while the agent ingests, else 503 with the reason |

    Args:
        address: host and port; port 0 chooses a free one.
        status: called at each request, from any thread. It returns a fleet agent's status with `turns` (whether its
            loop runs) and `unready` (the reasons why it does not ingest, empty if it does).
        access: as for `Serving`.
        fleet: returns the state of the whole fleet; None for no page of it.

    Raises:
        OptionError: the address is not available.
    """

    def __init__(
        self, address: tuple[str, int], status: Status, access: Access = OPEN, fleet: Status | None = None
    ) -> None:
        registry = CollectorRegistry()
        registry.register(StatusCollector(status))
        whole = staticmethod(fleet or dict)
        handler = type("Handler", (_Handler,), {"status": staticmethod(status), "fleet": whole, "registry": registry})
        super().__init__(address, handler, access)


class _Handler(ReadOnly):
    status: ClassVar[Status]
    fleet: ClassVar[Status]
    registry: ClassVar[CollectorRegistry]

    def get(self, path: str) -> None:
        """As documented in `LiveServer`."""
        if path == "/":
            self.answer(HTTPStatus.OK, "text/html; charset=utf-8", PAGE)
        elif path == "/status.json":
            self.answer(HTTPStatus.OK, "application/json", json.dumps(type(self).status()))
        elif path == "/fleet":
            self.answer(HTTPStatus.OK, "text/html; charset=utf-8", FLEET_PAGE)
        elif path == "/fleet.json":
            self.answer(HTTPStatus.OK, "application/json", json.dumps(type(self).fleet()))
        elif path == "/metrics":
            self.answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self.registry))
        elif path == "/healthz":
            self.probe("" if type(self).status()["turns"] else "its threads do not turn")
        elif path == "/readyz":
            self.probe(str(type(self).status()["unready"]))
        else:
            self.answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", "no such page")
