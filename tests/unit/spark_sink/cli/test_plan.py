"""`azimuth plan` reports invalid arguments before it connects to brokers."""

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
    """The timeout of a broker takes long, and would hide the invalid argument."""

    def asked(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("assignors.comparison.read_group", asked)
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--bootstrap-servers", "127.0.0.1:1", "--group", "g", *arguments])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())
