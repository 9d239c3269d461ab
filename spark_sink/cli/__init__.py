"""The command line: `azimuth`, also `python -m spark_sink`."""

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run one command; the exit code is 0 (ok), 1 (a finding) or 2 (usage or environment)."""
    try:
        # Not above: loading takes most of a second, and Ctrl-C in it is no error to trace.
        from spark_sink.cli import _app  # noqa: PLC0415

        _app.main(arguments)
    except KeyboardInterrupt:
        sys.exit(130)  # as shells say it: 128 and the signal's number
