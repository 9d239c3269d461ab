"""Read-only HTTP: the live page of an agent of a fleet, the autoscaler's figures, probes and Prometheus.

* `http_server`: a small HTTP server; `http_credentials`: its token and TLS.
* `status_server`: the page, the status as JSON, metrics and probes of an agent.
* `page`: the live page of an agent; `fleet_page`: the page of the whole fleet.
* `status_metrics`: a status as Prometheus metrics.
* `scaling_server`: the autoscaler's figures, metrics and a probe.
* `metrics_server`: a port for scrapes of Prometheus only.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from spark_sink.monitoring.live.http_credentials import Access
    from spark_sink.monitoring.live.http_server import parse_address
    from spark_sink.monitoring.live.metrics_server import serve_metrics
    from spark_sink.monitoring.live.scaling_server import ScalingFigures, ScalingServer, TopicFigures
    from spark_sink.monitoring.live.status_server import LiveServer
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "http_credentials": ["Access"],
            "http_server": ["parse_address"],
            "metrics_server": ["serve_metrics"],
            "scaling_server": ["ScalingFigures", "ScalingServer", "TopicFigures"],
            "status_server": ["LiveServer"],
        },
    )

__all__ = ["Access", "LiveServer", "ScalingFigures", "ScalingServer", "TopicFigures", "parse_address", "serve_metrics"]
