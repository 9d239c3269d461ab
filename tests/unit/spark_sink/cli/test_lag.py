"""The output of `azimuth lag`."""

from pathlib import Path

import pytest

from spark_sink.cli import lag as module
from spark_sink.cli import main
from spark_sink.errors import LagError
from spark_sink.kafka.group_lag import TopicLag
from spark_sink.ranges.batch_offset import TopicPartition


def test_topics_that_are_behind_are_named_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Of hundreds of topics most are not behind; a line for each would hide those that are."""
    found = [
        TopicLag(topic="quiet", partitions=3, lag_records=0, worst=(0, 0)),
        TopicLag(topic="late", partitions=3, lag_records=5, worst=(1, 4)),
        TopicLag(topic="later", partitions=2, lag_records=70, worst=(0, 70)),
    ]
    module._print("ingest", found)
    later, late, total = capsys.readouterr().out.splitlines()
    assert later.split() == ["70", "later", "(2", "partitions,", "most", "in", "0:", "70)"]
    assert late.split()[:2] == ["5", "late"]
    assert total == "ingest: 75 records behind, in 2 of 3 topics"


def test_a_paused_topic_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """A lag that nothing reduces would look like a fault."""
    module._print("ingest", [TopicLag(topic="t", partitions=1, lag_records=5, worst=(0, 5), paused=True)])
    late, total = capsys.readouterr().out.splitlines()
    assert late.endswith("most in 0: 5, paused)")
    assert total == "ingest: 5 records behind, in 1 of 1 topics, 1 paused"


FLEET = """
name = "g"
table = "{root}/{{cluster}}/{{topic}}"
[sources.eu]
bootstrap_servers = "localhost:1"
topics = ["t"]
[sources.us]
bootstrap_servers = "localhost:2"
topics = ["t"]
"""


def test_the_lag_of_a_fleet_is_that_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each source has its brokers and its tables; one that does not answer stops no other."""
    asked = []

    def answer(group: str, kafka: dict[str, str], table: str, options: dict[str, str]) -> list[TopicLag]:
        asked.append((group, kafka["bootstrap.servers"], table, options))
        if "us" in table:
            raise LagError("no broker answers")
        return [TopicLag(topic="t", partitions=3, lag_records=5, worst=(1, 4))]

    monkeypatch.setattr(module, "_lag_of_group", answer)
    (tmp_path / "fleet.toml").write_text(FLEET.format(root=tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["lag", "--fleet", f"{tmp_path}/fleet.toml"])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert asked[0] == ("g", "localhost:1", f"{tmp_path}/eu/{{topic}}", {})
    assert said.err == "azimuth: source 'us': no broker answers\n"
    assert said.out.splitlines()[-1] == "fleet 'g': 5 records behind, 2 sources; the lag of 1 is unknown"


def test_a_fleet_whose_sources_do_not_answer_is_not_zero_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sum over nothing is 0, and 0 behind is the best that there is."""

    def answer(*_: object) -> list[TopicLag]:
        raise LagError("no broker answers")

    monkeypatch.setattr(module, "_lag_of_group", answer)
    (tmp_path / "fleet.toml").write_text(FLEET.format(root=tmp_path))
    with pytest.raises(SystemExit):
        main(["lag", "--fleet", f"{tmp_path}/fleet.toml"])
    assert capsys.readouterr().out == "fleet 'g': lag unknown, 2 sources\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give --bootstrap-servers and --group, or --fleet FILE"),
        (("--bootstrap-servers", "h:1", "--group", "g", "--table", "/l/{cluster}/{topic}"), "several clusters"),
        (("--fleet", "f", "--group", "g"), "the file has brokers, group and tables"),
    ],
)
def test_what_is_missing_or_too_much_is_said(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lag of several clusters needs the brokers of each."""
    with pytest.raises(SystemExit) as ended:
        main(["lag", *arguments])
    assert ended.value.code == 2
    assert says in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_topics_that_the_user_may_not_see_are_no_lag_of_zero(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To a client without the right the topics do not exist, and a sum over nothing is 0."""
    monkeypatch.setattr("spark_sink.cli._reachable.reach", lambda _: None)
    monkeypatch.setattr("spark_sink.lake.positions_in_delta_log.positions", lambda *_: {TopicPartition("t", 0): 5})
    monkeypatch.setattr("spark_sink.kafka.group_lag.behind", lambda *_: [])
    with pytest.raises(SystemExit) as ended:
        main(["lag", "--bootstrap-servers", "h:1", "--group", "g", "--table", "/t"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert not said.out
    assert "topic t on h:1: there is no such topic, or this user may not describe it" in said.err


def test_a_placeholder_for_the_bucket_is_refused_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The address has a scheme: it is no fault of it."""
    with pytest.raises(SystemExit):
        main(["lag", "--bootstrap-servers", "localhost:1", "--group", "g", "--table", "s3://{topic}"])
    assert "{topic} stands in the name of the bucket" in capsys.readouterr().err
