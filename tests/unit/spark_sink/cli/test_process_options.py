"""`--log-format`: the log of a command."""

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from spark_sink.cli import _app
from spark_sink.cli._process_options import logged
from spark_sink.errors import OptionError
from spark_sink.monitoring.logs.line_format import LogFormat

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


def commands(found: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """All commands below one, by their words; a group that can run by itself is a command, too."""
    below = getattr(found, "commands", {})
    if not below or found.invoke_without_command:
        yield " ".join(words), found
    for name, one in below.items():
        yield from commands(one, *words, name)


def all_commands() -> dict[str, Any]:
    """The commands of `azimuth`, in an app of their own."""
    app = typer.Typer()
    for name in _app.COMMANDS:
        importlib.import_module(f"spark_sink.cli.{name}").register(app)
    return dict(commands(typer.main.get_command(app)))


COMMANDS = all_commands()


def runs_until_a_signal(command: Any) -> bool:
    """Whether the command's help says so, or that of an option."""
    texts = [command.help or "", *(getattr(option, "help", None) or "" for option in command.params)]
    return any("until SIGTERM" in text for text in texts)


def test_the_help_names_the_commands_that_run_until_a_signal() -> None:
    """The next test finds them by their help; `load`, `demo` and the others end by themselves."""
    found = {name for name, command in COMMANDS.items() if runs_until_a_signal(command)}
    assert found == {"agent", "autoscale", "claims run", "quarantine publish", "sink"}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_run_until_a_signal_have_one_format_of_the_log(name: str) -> None:
    """A collector of JSON drops the lines of a process that cannot write it; one variable sets it for all."""
    command = COMMANDS[name]
    options = {option.name: option for option in command.params}
    assert ("log_format" in options) == runs_until_a_signal(command)
    if "log_format" in options:
        option = options["log_format"]
        assert (option.opts, option.envvar) == (["--log-format"], "AZIMUTH_LOG_FORMAT")
