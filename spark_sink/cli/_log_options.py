"""`--log-format`: the log of a command that runs until a signal."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from spark_sink.cli._expected_errors import sentence_of
from spark_sink.cli._masked_sentence import note_settings
from spark_sink.monitoring.logs.line_format import LineFormat, LogFormat
from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values

Format = Annotated[
    LogFormat,
    typer.Option(
        "--log-format", envvar="AZIMUTH_LOG_FORMAT", show_envvar=True, help="Of the log: json has one object a line."
    ),
]

_log = logging.getLogger("azimuth.command")


@contextmanager
def logged(form: LogFormat, settings: Mapping[str, Any], **fields: str | None) -> Iterator[None]:
    """Write the log of the block in this format; in JSON the last error is a line of it, too.

    Args:
        form: text or JSON.
        settings: of the command; no line contains a secret of them.
        fields: values for each JSON line, such as the agent's name; None is left out.
    """
    from spark_sink.monitoring.logs.process_log import process_log  # noqa: PLC0415 -- structlog loads slowly

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
