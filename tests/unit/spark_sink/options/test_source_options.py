"""Options are read as Spark's Kafka source reads them, and nothing that was mistyped is passed over."""

import pytest

from spark_sink.errors import OptionError
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.starting_offsets import EARLIEST, LATEST
from spark_sink.ranges.batch_offset import TopicPartition

BASE = {"kafka.bootstrap.servers": "x:1", "kafka.group.id": "g", "subscribe": "b, a ,b"}


def test_names_are_read_without_case_and_kafka_properties_pass_through() -> None:
    """Spark lower-cases option names; properties of the client lose their prefix."""
    options = SourceOptions.parse(
        {
            **BASE,
            "MaxOffsetsPerTrigger": "10",
            "Kafka.Session.Timeout.ms": "6000",
            "rack": "az-a",
            "includeHeaders": "TRUE",
        }
    )
    assert options.topics == ("a", "b")
    assert options.max_offsets == 10
    assert options.headers
    assert options.session_timeout_s == 6.0
    assert options.kafka["client.rack"] == options.rack == "az-a"
    assert options.group == "g"


def test_defaults() -> None:
    """Options that are not set have Kafka's or Spark's default."""
    options = SourceOptions.parse(BASE)
    assert options.starting.mark == EARLIEST
    assert options.fail_on_data_loss
    assert options.max_offsets is None
    assert options.workers is None
    assert options.session_timeout_s == 45.0
    assert options.max_poll_interval_s == 300.0
    assert options.parallelism >= 1


@pytest.mark.parametrize(
    ("text", "mark", "offsets"),
    [
        ("latest", LATEST, {}),
        ("EARLIEST", EARLIEST, {}),
        ('{"a": {"0": 5, "1": -1}}', EARLIEST, {TopicPartition("a", 0): 5, TopicPartition("a", 1): -1}),
    ],
)
def test_starting_offsets(text: str, mark: int, offsets: dict[TopicPartition, int]) -> None:
    """The three forms of Spark's source."""
    starting = SourceOptions.parse({**BASE, "startingOffsets": text}).starting
    assert (starting.mark, starting.offsets) == (mark, offsets)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": ""}, "subscribe.*subscribePattern"),
        ({"subscribePattern": "x"}, "subscribe.*subscribePattern"),
        ({"kafka.group.id": ""}, "kafka.group.id"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"maxOffsetPerTrigger": "5"}, "maxoffsetpertrigger"),
        ({"maxOffsetsPerTrigger": "0"}, "maxoffsetspertrigger.*'0'"),
        ({"minPartitions": "many"}, "minpartitions.*'many'"),
        ({"failOnDataLoss": "maybe"}, "failondataloss.*'maybe'"),
        ({"startingOffsets": "middle"}, "startingOffsets.*'middle'"),
        ({"startingOffsets": '{"a": 5}'}, "startingOffsets"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "a/0 is below -2"),
        ({"startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "a/0 is below 0"),
        ({"assignor": "range"}, "assignor.*'range'"),
        ({"workers": "0"}, "workers.*'0'"),
        ({"workers": '{"a": 0}'}, "workers"),
        ({"workers": "true"}, "workers"),
        ({"workers": '{"a": true}'}, "workers"),
        ({"workersTopic": "a b"}, "workersTopic.*'a b'"),
        ({"assignor": "shuffled", "workers": "2"}, "workers'.*'shuffled'.*'hrw'"),
        ({"assignor": "shuffled", "workersTopic": "numbers"}, "workersTopic'.*'shuffled'"),
        ({"epsilon": "much"}, "epsilon.*'much'"),
        ({"kafka.auto.offset.reset": "latest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "committed by the source"),
        ({"valueFormat": "xml"}, "valueformat.*'xml'"),
        ({"valueFormat": "avro"}, "valueFormat=avro needs the option 'schema.registry.url'"),
        ({"valueFormat": "avro", "schema.registry.url": "http://x"}, "on several topics needs.*'valueSubject'"),
        ({"valueFormat": "json", "landing": '{"path": "t"}'}, "only where 'landing' holds the option 'columns'"),
        ({"kafka.session.timeout.ms": "soon"}, "kafka.session.timeout.ms.*'soon'"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, str], words: str) -> None:
    """The message names the option, the value and the way out."""
    with pytest.raises(OptionError, match=words):
        SourceOptions.parse({**BASE, **options})


def test_the_format_of_values() -> None:
    """The subject of one topic follows from its name; the registry's properties lose their prefix."""
    more = {"subscribe": "a", "valueFormat": "avro", "schema.registry.url": "http://x"}
    value = SourceOptions.parse({**BASE, **more}).value
    assert (value.name, value.subject, value.registry) == ("avro", "a-value", {"url": "http://x"})
    assert SourceOptions.parse(BASE).value.name == "raw"
