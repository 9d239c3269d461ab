"""Behaviour of all commands: arguments that are not text, interrupts, released objects, and lazy imports."""

import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer

from spark_sink.cli import _app, main
from spark_sink.errors import SparkSinkError


class _Held:
    """Represents a client that a command holds."""


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


@pytest.mark.parametrize(
    ("arguments", "registered"),
    [
        (["agent", "--help"], ["agent"]),
        (["pause", "--help"], ["pause"]),
        (["resume", "--help"], _app.COMMANDS),  # of the module `pause`
        (["agnet"], _app.COMMANDS),
        (["--help", "agent"], _app.COMMANDS),
        ([], _app.COMMANDS),
    ],
)
def test_only_the_command_that_is_called_is_imported(arguments: list[str], registered: Sequence[str]) -> None:
    """The other commands take a tenth of the processor time of an agent's start; help and suggestions need them all."""
    program = f"import sys\nfrom spark_sink.cli import _app, main\ntry: main({arguments})\nexcept SystemExit: pass\n"
    program += "sys.exit(' '.join(name for name in _app.COMMANDS if f'spark_sink.cli.{name}' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.splitlines()[-1] == " ".join(registered)


def test_an_agent_joins_before_it_loads_what_reads_and_writes(tmp_path: Path) -> None:
    """Its settings are checked first, so they need none of it; errors in them are found as before."""
    (tmp_path / "fleet.toml").write_text(
        'name = "f"\nagent = "a"\ntable = "lake"\n[sources.s]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["x"]\n'
    )
    program = f"""
import sys
from spark_sink.cli import main
from spark_sink.fleet import agent_process
agent_process.run = lambda *_: None
try: main(["agent", "--config", {str(tmp_path / "fleet.toml")!r}])
except SystemExit as ended: assert not ended.code, ended.code
sys.exit(" ".join({{"deltalake", "pandas", "prometheus_client", "pyarrow", "rich"}} & sys.modules.keys()) or None)
"""
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


@pytest.mark.parametrize("command", ["owner a --nodes a", "owner a --nodes a --json", "--help"])
@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("{} > /dev/full", 2, "azimuth: the output cannot be written: No space left on device\n"),
        ("set -o pipefail; {} | true", 141, ""),
        ("{} >&-", 0, ""),
        ("cd {tmp} && rmdir {tmp} && {} > /dev/null", 0, ""),
    ],
    ids=["full", "nobody reads", "closed", "folder gone"],
)
def test_output_that_nobody_takes_is_no_traceback_and_no_finding(
    tmp_path: Path, command: str, shell: str, code: int, said: str
) -> None:
    """A full disk is an error of the environment (2); a closed pipe is 141; 1 would mean a finding in the data."""
    line = shell.replace("{tmp}", str(tmp_path)).replace("{}", f"{sys.executable} -m spark_sink {command}")
    done = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of tables may be relative, and then to nothing."""
    (tmp_path / "gone").mkdir()
    line = f"cd gone && rmdir ../gone && exec {sys.executable} -m spark_sink verify lake"
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (
        2,
        "azimuth: the current folder is gone: change to one that is there\n",
    )


def test_the_help_of_an_agent_says_how_to_drain_it(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no flag for it: an operator who looks for one finds the signal."""
    with pytest.raises(SystemExit):
        main(["agent", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "To drain an agent, send SIGTERM: it hands its topics to the other agents before it ends." in said


def test_a_command_starts_no_threads_for_matrices() -> None:
    """OpenBLAS starts one for each processor, which waits actively; OMP_NUM_THREADS would limit Arrow's, too."""
    program = "import sys\nfrom spark_sink.cli import main\nsys.argv = ['azimuth', '--version']\n"
    program += "try: main()\nexcept SystemExit: pass\nimport numpy, psutil\nprint(psutil.Process().num_threads())\n"
    program += "import os\nprint(os.environ.get('OMP_NUM_THREADS'))"
    given = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[1:] == ["1", "None"]
