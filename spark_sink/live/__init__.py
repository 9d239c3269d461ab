"""A live page with the status of an agent of a fleet, and the endpoints for probes and Prometheus."""

from spark_sink.live.status_server import LiveServer, parse_address

__all__ = ["LiveServer", "parse_address"]
