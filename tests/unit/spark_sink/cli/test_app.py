"""The version and the help texts of `azimuth`."""

import importlib.metadata

import pytest

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.cli import main


def test_the_version_is_the_one_that_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` needs no command."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"azimuth {importlib.metadata.version('kafka-azimuth')}\n"


def test_the_help_of_sink_says_each_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flags have no defaults, because the file and the environment follow them."""
    monkeypatch.setenv("COLUMNS", "240")
    with pytest.raises(SystemExit):
        main(["sink", "--help"])
    lines = capsys.readouterr().out.splitlines()
    fields = AgentSettings.model_fields.items()
    defaults = {name: field.default for name, field in fields if isinstance(field.default, str)}
    assert {"assignor", "starting_offsets", "trigger", "master", "driver_memory", "landing"} <= defaults.keys()
    for name, default in (defaults | {"agent": "host name"}).items():
        flag = f"--{name.replace('_', '-')} "
        assert f"[default: ({default})]" in next(line for line in lines if flag in line), name
