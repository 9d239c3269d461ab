"""`azimuth plan` reports invalid arguments before it connects to brokers."""

import pytest

from assignors import Topic
from assignors.comparison import LiveGroup
from spark_sink.cli import plan
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


def test_topics_that_a_plan_lacks_are_counted_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A plan of the others looks complete."""
    group = LiveGroup(
        name="g",
        state="Stable",
        strategy="range",
        members=(),
        hosts={},
        topics=(Topic("a", 1),),
        sizes=None,
        not_described=("b", "c", "d", "e"),
    )
    plan._warn_of_gaps(group)
    said = capsys.readouterr()
    assert not said.out
    assert said.err == (
        "azimuth: 4 of 5 topics of group 'g' are not in the plan: there is no such topic, or this user may not "
        "describe it (b, c, d, ...): allow it DESCRIBE\n"
    )
