"""Options are read as Spark's Kafka source reads them, and nothing that was mistyped is passed over."""

import pytest

from spark_sink.errors import OptionError
from spark_sink.options.batch_limits import BatchLimits
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
    assert options.limits.max_offsets == 10
    assert options.headers
    assert options.session_timeout_s == 6.0
    assert options.kafka["client.rack"] == options.rack == "az-a"
    assert options.group == "g"


def test_defaults() -> None:
    """Options that are not set have Kafka's or Spark's default."""
    options = SourceOptions.parse(BASE)
    assert options.starting.mark == EARLIEST
    assert options.fail_on_data_loss
    assert options.limits == BatchLimits(max_offsets=1_000_000 * options.parallelism), "no batch is unbounded"
    assert options.workers is None
    assert options.session_timeout_s == 45.0
    assert options.max_poll_interval_s == 300.0
    assert options.parallelism >= 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250", 0.25), ("250ms", 0.25), ("10s", 10), ("15m", 900), ("15min", 900), ("2h", 7_200), (" 1D ", 86_400)],
)
def test_a_delay_is_written_as_for_spark(text: str, seconds: float) -> None:
    """Spark's own source reads the same texts as the same times."""
    given = {**BASE, "minOffsetsPerTrigger": "5", "maxTriggerDelay": text}
    assert SourceOptions.parse(given).limits.max_delay_s == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("100", 100), ("100b", 100), ("2k", 2_048), ("512m", 512 << 20), ("1GB", 1 << 30)]
)
def test_a_size_is_written_as_for_spark(text: str, size: int) -> None:
    """Spark's sizes have the units of memory, each 1024 times the one before."""
    assert SourceOptions.parse({**BASE, "maxBytesPerTrigger": text}).limits.max_bytes == size


def test_a_pattern_is_trimmed() -> None:
    """Spark's own source reads it so; with the spaces it matches no topic, and the stream waits without an error."""
    assert SourceOptions.parse({**BASE, "subscribe": "", "subscribePattern": " a.* "}).pattern == "a.*"


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
        ({"kafka.group.id": " g"}, "kafka.group.id.*begins with a space"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"maxOffsetPerTrigger": "5"}, "maxoffsetpertrigger"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger.*'0'"),
        ({"maxBytesPerTrigger": "0g"}, "maxBytesPerTrigger.*'0g'"),
        ({"maxBytesPerTrigger": "1x"}, "maxBytesPerTrigger.*'1x'.*'512m'"),
        ({"minOffsetsPerTrigger": "0"}, "minOffsetsPerTrigger.*'0'"),
        ({"minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"}, "11 is above maxOffsetsPerTrigger, 10"),
        ({"minOffsetsPerTrigger": "5", "maxTriggerDelay": "soon"}, "maxTriggerDelay.*'soon'.*'15m'"),
        ({"maxTriggerDelay": "1m"}, "no meaning without 'minOffsetsPerTrigger'"),
        ({"endingOffsets": "latest"}, "endingoffsets.*a stream has no end"),
        ({"endingTimestamp": "1"}, "endingtimestamp.*spark.read"),
        ({"valueNull": "drop"}, "valueNull.*'drop'"),
        ({"valueFormat": "json", "includeTimestampType": "true"}, "includeTimestampType' is for valueFormat=raw"),
        ({"minPartitions": "many"}, "minPartitions.*'many'"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss.*'maybe'"),
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
        ({"assign": '{"a": [0]}'}, "'assign' cannot be set: the group assigns the partitions; use subscribe"),
        ({"groupIdPrefix": "x"}, "'groupidprefix' cannot be set: use kafka.group.id"),
        ({"maxRecordsPerPartition": "5"}, "'maxrecordsperpartition' cannot be set: use minPartitions"),
        ({"fetchOffset.numRetries": "5"}, "'fetchoffset.numretries' cannot be set: the Kafka client repeats"),
        ({"valueFormat": "xml"}, "valueFormat.*'xml'"),
        ({"valueFormat": "avro"}, "valueFormat=avro needs the option 'schema.registry.url'"),
        ({"valueFormat": "avro", "schema.registry.url": "http://x"}, "on several topics needs.*'valueSubject'"),
        ({"valueFormat": "json", "landing": '{"path": "t"}'}, "only where 'landing' holds the option 'columns'"),
        ({"kafka.session.timeout.ms": "soon"}, "kafka.session.timeout.ms.*'soon'"),
        ({"kafka.isolation.level": "read-committed"}, "isolation.level.*'read-committed', need one of read_committed"),
        ({"kafka.isolation.level": ""}, "isolation.level.*'', need one of read_committed, read_uncommitted"),
        ({"startingTimestamp": str(2**63)}, f"startingTimestamp.*{2**63}', need a whole number of {2**63 - 1} or less"),
        ({"startingTimestamp": "1_7"}, "startingTimestamp.*'1_7', need a whole number of 0 or more"),
        ({"startingOffsets": '{"a": {"1_0": 5}}'}, "startingOffsets.*need .*1_0"),
        ({"startingOffsets": '{"a": {"0": "1_7"}}'}, "startingOffsets.*need .*1_7"),
        ({"startingOffsets": f'{{"a": {{"0": {2**63}}}}}'}, f"startingOffsets.*a/0 is above {2**63 - 1}"),
        ({"startingOffsetsByTimestamp": f'{{"a": {{"0": {2**63}}}}}'}, f"a/0 is above {2**63 - 1}"),
        ({"subscribe": "", "subscribePattern": "  "}, "needs one of the options 'subscribe'"),
        ({"startingOffsets": '{"a": {"0": 1}, "a": {"1": 2}}'}, "startingOffsets': 'a' is there twice; leave one out"),
        ({"startingOffsets": '{"a": {"0": 1, "00": 2}}'}, "startingOffsets.* names a partition twice"),
        ({"startingOffsetsByTimestamp": '{"a": {"0": 1, "0": 2}}'}, "ByTimestamp': '0' is there twice"),
        ({"workers": '{"a": 1, "a": 2}'}, "workers': 'a' is there twice"),
        ({"startingOffsets": "[" * 10_000}, "startingOffsets.* is not JSON"),
        ({"landing": "[" * 10_000}, "'landing': need a JSON object"),
        ({"positions": '["/a"'}, "positions.* need the address of a table, or a JSON list of addresses"),
        ({"positions": "[]"}, "positions.*'\\[\\]', need the address of a table"),
        ({"subscribe": "", "subscribePattern": "a{99999999999}"}, "subscribePattern.* is not a regular expression"),
        ({"epsilon": "inf"}, "epsilon.*'inf', need a finite number of 0 or more"),
        ({"epsilon": "1_7"}, "epsilon.*'1_7'"),
        ({"maxBytesPerTrigger": "\u0663m"}, "maxBytesPerTrigger.*need a size"),
        ({"maxBytesPerTrigger": "9" * 5_000}, "maxBytesPerTrigger.*need a size"),
        ({"minOffsetsPerTrigger": "1", "maxTriggerDelay": "9" * 5_000}, "maxTriggerDelay.*need a time"),
        ({"pathh": "x"}, "no option 'pathh'"),
        ({"kafkaConsumer.pollTimeoutMs": str(2**31)}, f"pollTimeoutMs.*{2**31}', need a whole number of {2**31 - 1}"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, str], words: str) -> None:
    """The message names the option, the value and the way out."""
    with pytest.raises(OptionError, match=words):
        SourceOptions.parse({**BASE, **options})


def test_a_batch_read_needs_no_group() -> None:
    """It joins none, and reads between two rules."""
    ends = {"endingOffsets": '{"a": {"0": 7}}', "endingOffsetsByTimestamp": '{"b": {"1": 9}}'}
    options = SourceOptions.parse({**BASE, "kafka.group.id": "", **ends}, stream=False)
    assert options.ending is not None
    assert options.ending.mark == LATEST
    assert options.ending.offsets == {TopicPartition("a", 0): 7}
    assert options.ending.timestamps_ms == {TopicPartition("b", 1): 9}
    assert options.ending.no_later_record == "latest"
    assert SourceOptions.parse(BASE, stream=False).ending is None


def test_the_format_of_values() -> None:
    """The subject of one topic follows from its name; the registry's properties lose their prefix."""
    more = {"subscribe": "a", "valueFormat": "avro", "schema.registry.url": "http://x"}
    value = SourceOptions.parse({**BASE, **more}).value
    assert (value.name, value.subject, value.registry) == ("avro", "a-value", {"url": "http://x"})
    assert SourceOptions.parse(BASE).value.name == "raw"
