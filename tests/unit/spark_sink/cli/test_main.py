"""What surrounds every command: what is not text, what is interrupted, what is let go, what is not loaded."""

import signal
import subprocess
import sys
import weakref

import pytest
import typer

from spark_sink._errors import SparkSinkError
from spark_sink.cli import _app, main


class _Held:
    """Stands for a client that a command holds."""


def test_an_argument_that_is_not_utf_8_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """File names may be any bytes; clients and formats would each fail on them in another way."""
    with pytest.raises(SystemExit) as ended:
        main(["verify", "lake\udcff"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "azimuth: argument b'lake\\xff': it is not UTF-8\n"


def test_what_a_failed_command_held_is_let_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Kafka client that lives until the interpreter ends may still answer then, and crash it."""
    app = typer.Typer()
    living: list[weakref.ref[_Held]] = []

    @app.command()
    def fails() -> None:
        held = _Held()
        living.append(weakref.ref(held))
        raise SparkSinkError("no")

    monkeypatch.setattr(_app, "app", app)
    monkeypatch.setattr(_app, "COMMANDS", ())
    seen: list[_Held | None] = []
    monkeypatch.setattr(sys, "exit", lambda code: seen.append(living[0]() if code == 2 else _Held()))
    main([])
    assert (seen, capsys.readouterr().err) == ([None], "azimuth: no\n")


def test_help_loads_no_client_of_the_other_packages() -> None:
    """Errors of all three packages are expected, yet asking for help, or for a completion, waits for none of them."""
    program = "import sys\nfrom spark_sink.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    program += "sys.exit(' '.join({'kafka', 'numpy', 'pyarrow', 'pyspark'} & sys.modules.keys()) or None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_while_it_loads_is_no_traceback() -> None:
    """Loading takes most of a second, in which Ctrl-C is pressed as well: 130, as shells have it."""
    program = (
        "import builtins, os, signal\n"
        "from spark_sink.cli import main\n"
        "real = builtins.__import__\n"
        "def slow(name, *rest):\n"
        "    if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = slow\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main(['--version'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def test_a_warning_is_a_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A library's warnings come without the line of its source that raised them."""
    import warnings  # noqa: PLC0415 -- the name that `main` changes

    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    with pytest.raises(SystemExit):
        main(["--version"])
    assert warnings.formatwarning("no such zone", UserWarning, "file.py", 1) == "azimuth: no such zone\n"
    capsys.readouterr()
