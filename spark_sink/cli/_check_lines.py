"""`--check`: prints one line for each question, and ends with exit code 0, or with 2 if there is a fault."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from spark_sink.checks import Finding


def report(findings: "Sequence[Finding]") -> NoReturn:
    """Print the findings, and end.

    Raises:
        typer.Exit: always.
    """
    width = max(len(one.subject) for one in findings)
    for one in findings:
        typer.echo(one.line(width))
    raise typer.Exit(2 if any(one.bad for one in findings) else 0)
