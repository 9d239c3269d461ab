"""`--check`: prints one line for each question, and ends with exit code 0, or with 2 if there is a fault."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from spark_sink.cli._error_sentences import masked
from spark_sink.cli._process_options import logged
from spark_sink.monitoring.logs.line_format import LogFormat

if TYPE_CHECKING:
    from spark_sink.checks import Finding


@contextmanager
def only_findings(settings: Mapping[str, Any]) -> Iterator[None]:
    """Keep the debug messages of this project and the lines of delta-rs out of a check; a finding has the reason.

    Args:
        settings: of the command; no line contains a secret of them.
    """
    os.environ.setdefault("RUST_LOG", "error")  # delta-rs reads it when it is imported
    with logged(LogFormat.TEXT, settings):  # without a log structlog prints everything
        yield


def report(findings: "Sequence[Finding]") -> NoReturn:
    """Print the findings, and end.

    Raises:
        typer.Exit: always.
    """
    width = max(len(one.subject) for one in findings)
    for one in findings:
        typer.echo(masked(one.line(width)))
    raise typer.Exit(2 if any(one.bad for one in findings) else 0)
