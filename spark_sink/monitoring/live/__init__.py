"""Read-only HTTP: the live page of an agent of a fleet, the autoscaler's figures, probes and Prometheus."""

from spark_sink.monitoring.live.http_credentials import Access
from spark_sink.monitoring.live.http_server import parse_address
from spark_sink.monitoring.live.metrics_server import serve_metrics
from spark_sink.monitoring.live.scaling_server import ScalingFigures, ScalingServer, TopicFigures
from spark_sink.monitoring.live.status_server import LiveServer

__all__ = ["Access", "LiveServer", "ScalingFigures", "ScalingServer", "TopicFigures", "parse_address", "serve_metrics"]
