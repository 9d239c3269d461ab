"""A page that shows how an agent of a fleet stands while it runs, and what probes and Prometheus ask for."""

from spark_sink.live.status_server import LiveServer, parse_address

__all__ = ["LiveServer", "parse_address"]
