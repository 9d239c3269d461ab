"""`azimuth plan --producer` on librdkafka's mock cluster."""

import contextlib
import json

import pytest

from producer.testing import MockCluster
from spark_sink.cli import main


def plan(mock: MockCluster, *arguments: str) -> None:
    """Run the command."""
    main(["plan", "--bootstrap-servers", mock.bootstrap_servers, "--producer", "az-a", *arguments])


def test_a_pattern_shows_each_matching_topic_and_a_name_only_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A name with dots is a pattern too, which must not add a topic that looks alike."""
    names = ("flights.a", "flights.b", "flightsxa", "__internal")

    def shown(*arguments: str) -> str:
        with contextlib.suppress(SystemExit):
            plan(mock, *arguments)
        return capsys.readouterr().out

    with MockCluster() as mock:
        for name in names:
            mock.create(name, [1, 2, 3])
        text = shown("--topic", "flights.*")
        assert [name for name in names if name in text] == ["flights.a", "flights.b", "flightsxa"]
        text = shown("--topic", "flights.a")
        assert "topic flights.a, 3 partitions" in text
        assert "flightsxa" not in text
        assert json.loads(shown("--topic", "flights.a", "--json"))["skew"] == 3.0
        assert [one["topic"] for one in json.loads(shown("--topic", ".*", "--json"))] == sorted(names[:3])


@pytest.mark.parametrize(
    ("topic", "problem"), [("none", "does not exist"), ("fl[", "is not a regular expression")], ids=["none", "broken"]
)
def test_a_topic_that_is_not_there_is_one_sentence(
    capsys: pytest.CaptureFixture[str], topic: str, problem: str
) -> None:
    """With the value, as every wrong value."""
    with MockCluster() as mock:
        mock.create("flights", [1])
        with pytest.raises(SystemExit) as ended:
            plan(mock, "--topic", topic)
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert topic in text
    assert problem in text
    assert "Traceback" not in text
