"""The entry point: builds the command tree and turns expected errors into one sentence and exit code 2."""

import importlib
import pkgutil
import sys
from pathlib import Path

import click
import typer

from spark_sink._errors import SparkSinkError

# Every module here without a leading underscore is a command (or group) and defines `register(app)`. Heavy imports
# stay inside the commands, so that `azimuth --help` answers at once.
COMMANDS = tuple(
    module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if not module.name.startswith("_")
)

app = typer.Typer(
    name="azimuth",
    help="Kafka to lake: who reads what, who writes where, exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _expected_errors() -> tuple[type[Exception], ...]:
    roots: list[type[Exception]] = [SparkSinkError]
    for package, name in (("assignors", "AssignorError"), ("producer", "ProducerError")):
        found = getattr(importlib.import_module(package), name, None)
        if found is not None:
            roots.append(found)
    return tuple(roots)


def main(arguments: list[str] | None = None) -> None:
    """Run one command; the exit code is 0 (ok), 1 (a finding) or 2 (usage or environment)."""
    for command in COMMANDS:
        importlib.import_module(f"spark_sink.cli.{command}").register(app)
    try:
        app(arguments, standalone_mode=True)
    except _expected_errors() as error:
        click.echo(f"azimuth: {error}", err=True)
        sys.exit(2)
