"""The entry point: builds the command tree, and reports expected errors as one sentence with exit code 2."""

import contextlib
import importlib
import pkgutil
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spark_sink.cli._error_sentences import masked, missing, sentence_of

# Every module here without a leading underscore is a command (or group) and defines `register(app)`. Slow imports
# are inside the commands, so that `azimuth --help` answers immediately.
COMMANDS = tuple(
    module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if not module.name.startswith("_")
)

_REGISTERED: set[str] = set()
_NOBODY_READS = 128 + signal.SIGPIPE

app = typer.Typer(
    name="azimuth",
    help="Kafka to lake: who reads what, who writes where, exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        typer.echo(f"azimuth {importlib.metadata.version('kafka-azimuth')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of all commands."""


def main(arguments: list[str] | None = None) -> None:
    """Run one command; the exit code is 0 (ok), 1 (a finding) or 2 (usage or environment)."""
    warnings.formatwarning = lambda message, *_, **__: f"azimuth: {message}\n"
    given = sys.argv[1:] if arguments is None else arguments
    sentence = _unreadable(given) or _run(arguments, _called(given))
    # Outside any `except`, so that the objects of a failed command, such as Kafka clients, are released before the
    # exit.
    if sentence:
        with contextlib.suppress(OSError):  # stderr may be on the full disk, too; the exit code is still set
            typer.echo(f"azimuth: {masked(sentence, given)}", err=True)
        sys.exit(2)


def _called(arguments: Sequence[str]) -> Sequence[str]:
    """Return the command that the first argument names, or all of them for help, typing errors and options before it.

    The others and the libraries that they import take a tenth of the processor time of an agent's start.
    """
    return arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS


def _run(arguments: list[str] | None, commands: Sequence[str]) -> str | None:
    """Run the command, and return the message of an expected error.

    Args:
        arguments: of the command; None for those of this process.
        commands: modules of the commands to register.
    """
    for command in commands:
        if command in _REGISTERED:  # by an earlier call in this process
            continue
        try:
            importlib.import_module(f"spark_sink.cli.{command}").register(app)
            _REGISTERED.add(command)
        except ModuleNotFoundError as error:
            _register_absent(command, error)
    try:
        try:
            app(arguments, standalone_mode=True)
        except SystemExit as ended:
            if isinstance(ended.__context__, BrokenPipeError):  # the reader closed the pipe; 1 would mean a finding
                sys.exit(_NOBODY_READS)
            raise
        finally:
            _flush()
    except Exception as error:
        if (sentence := sentence_of(error)) is not None:
            return sentence
        raise
    return None


def _flush() -> None:
    """Flush now: if the interpreter found a full disk at its exit, the exit code would not be ours."""
    if sys.stdout is not None:  # closed by the caller
        sys.stdout.flush()


def _unreadable(arguments: Sequence[str]) -> str | None:
    """Name the argument that is not UTF-8 text, such as a file name; no table or group has such a name."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            return f"argument {argument.encode(errors='surrogateescape')!r}: it is not UTF-8"
    return None


def _register_absent(command: str, error: ModuleNotFoundError) -> None:
    """List a command whose extra is missing, with the name of the extra."""
    from rich.markup import escape

    sentence = missing(error)

    def say() -> None:
        typer.echo(f"azimuth: {command}: {sentence}", err=True)
        raise typer.Exit(2)

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(
        command, help=f"Not there: {escape(sentence)}", context_settings=anything, rich_help_panel="Not installed"
    )(say)
