"""The command line: `azimuth`, also `python -m spark_sink`."""

from spark_sink.cli._app import app, main

__all__ = ["app", "main"]
