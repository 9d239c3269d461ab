"""Options of commands that run until a signal: the format of their log, and those of their pages over HTTP."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from spark_sink.cli._error_sentences import note_settings, sentence_of
from spark_sink.monitoring.logs.line_format import LineFormat, LogFormat
from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values

Format = Annotated[
    LogFormat,
    typer.Option(
        "--log-format", envvar="AZIMUTH_LOG_FORMAT", show_envvar=True, help="Of the log: json has one object a line."
    ),
]

_log = logging.getLogger("azimuth.command")
Token = Annotated[Path | None, typer.Option("--http-token", help="File with a token that requests must carry.")]
Certificate = Annotated[Path | None, typer.Option("--http-certificate", help="Serve HTTPS by this PEM certificate.")]
Key = Annotated[Path | None, typer.Option("--http-key", help="Its key, unless it is in the certificate's file.")]


@contextmanager
def logged(form: LogFormat, settings: Mapping[str, Any], **fields: str | None) -> Iterator[None]:
    """Write the log of the block in this format; in JSON the last error is a line of it, too.

    Args:
        form: text or JSON.
        settings: of the command; no line contains a secret of them.
        fields: values for each JSON line, such as the agent's name; None is left out.
    """
    from spark_sink.monitoring.logs.process_log import process_log

    note_settings(settings)
    known = {name: value for name, value in fields.items() if value is not None}
    with process_log(LineFormat(form, Mask(secret_values(settings)), known)):
        if form is not LogFormat.JSON:
            yield
            return
        try:
            yield
        except (typer.Exit, typer.BadParameter):
            raise
        except Exception as error:
            raise typer.Exit(_report(error)) from error


def _report(error: Exception) -> int:
    """Log the error that ends a command, and return the exit code."""
    sentence = sentence_of(error)
    if sentence is None:
        _log.critical("unexpected error", exc_info=error)
        return 1
    _log.error(sentence)
    return 2


def refuse_without_http(
    http: str | None, token: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> None:
    """Refuse options of pages that are not served: an operator would take the process for watched.

    Raises:
        typer.BadParameter: one is given without `--http`.
    """
    given = {"--http-token": token, "--http-certificate": certificate, "--http-key": key}
    stray = next((name for name, value in given.items() if value is not None), None)
    if http is None and stray is not None:
        raise typer.BadParameter("it has no effect without --http, the address of the pages", param_hint=stray)
