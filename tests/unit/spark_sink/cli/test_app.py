"""What `azimuth` says of itself."""

import importlib.metadata

import pytest

from spark_sink.cli import main


def test_the_version_is_the_one_that_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` needs no command."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"azimuth {importlib.metadata.version('kafka-azimuth')}\n"
