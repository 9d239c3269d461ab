"""`--log-format`: the log of a command."""

import json
from typing import Any

import pytest
import typer

from spark_sink.cli._log_options import logged
from spark_sink.errors import OptionError
from spark_sink.logs.line_format import LogFormat

SETTINGS = {"kafka": {"sasl.password": "hunter22"}}


def ended(error: Exception, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Return the exit code of a command that ends with an error, and the last line of its log."""
    with pytest.raises(typer.Exit) as left, logged(LogFormat.JSON, SETTINGS, agent="a1", group=None):
        raise error
    return left.value.exit_code, json.loads(capsys.readouterr().err)


def test_the_error_that_ends_a_command_is_a_line_of_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    """A container's last words are the ones that matter, and a collector of JSON would drop a plain sentence."""
    code, line = ended(OptionError("password hunter22 is refused"), capsys)
    assert code == 2
    assert (line["level"], line["message"], line["agent"]) == ("error", "password *** is refused", "a1")
    assert "exception" not in line
    assert "group" not in line


def test_a_defect_has_its_traceback_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A defect is to be reported with its place."""
    code, line = ended(ZeroDivisionError("x"), capsys)
    assert code == 1
    assert "ZeroDivisionError: x" in line["exception"]


def test_a_wrong_flag_and_an_exit_code_pass_through() -> None:
    """They are no errors of the command's work."""
    for error in (typer.Exit(1), typer.BadParameter("x")):
        with pytest.raises(type(error)), logged(LogFormat.JSON, {}):
            raise error


def test_in_text_the_error_stays_a_sentence_of_the_command_line() -> None:
    """`azimuth: <sentence>` is what people know."""
    with pytest.raises(OptionError), logged(LogFormat.TEXT, {}):
        raise OptionError("x")
