"""`azimuth plan` says what is wrong before it looks for brokers."""

import pytest

from spark_sink.cli._app import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "*=\u00b2"], "need a whole number"),
        (["--workers", "*=0"], "1 or more"),
        (["--epsilon", "-1"], "epsilon=-1.0"),
    ],
)
def test_wrong_settings_are_told_before_any_broker_is_asked(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker that does not answer takes long to say so, and then not what was wrong."""

    def asked(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("assignors.comparison.read_group", asked)
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--bootstrap-servers", "127.0.0.1:1", "--group", "g", *arguments])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())
