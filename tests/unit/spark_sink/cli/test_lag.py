"""The output of `azimuth lag`."""

import pytest

from spark_sink.cli import lag as module
from spark_sink.kafka.group_lag import TopicLag


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
