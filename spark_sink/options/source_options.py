"""The options of the source, as values. An option with the meaning of one of Spark's Kafka source has its name."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from assignors.errors import NO_PATTERN
from assignors.settings import proposal
from spark_sink.errors import OptionError
from spark_sink.options.batch_limits import BatchLimits, batch_limits
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.options.option_texts import MOST_MS, addresses, choice, flag, fraction, group_name, json_value, number
from spark_sink.options.starting_offsets import OffsetRule, ending, starting, topic_ids
from spark_sink.options.value_format import FORMATS, REGISTRY, ValueFormat, value_format

_KAFKA = "kafka."
# Properties that this source sets itself, and options of Spark's own source, with the alternative for the message.
_REFUSED = {
    "assign": "the group assigns the partitions; use subscribe or subscribePattern",
    "fetchoffset.numretries": "the Kafka client repeats its requests itself",
    "fetchoffset.retryintervalms": "the Kafka client repeats its requests itself",
    "groupidprefix": "use kafka.group.id, the whole name of the group",
    "kafka.auto.offset.reset": "use startingOffsets",
    "kafka.enable.auto.commit": "offsets are committed by the source",
    "kafka.key.deserializer": "keys are always binary",
    "kafka.value.deserializer": "use valueFormat",
    "kafka.interceptor.classes": "there are none in Python",
    "maxrecordsperpartition": "use minPartitions for more tasks, or maxOffsetsPerTrigger for smaller batches",
}
_KNOWN = frozenset(
    {
        "agent",
        "assignor",
        "endingoffsets",
        "endingoffsetsbytimestamp",
        "endingtimestamp",
        "epsilon",
        "failondataloss",
        "fetchrecordbatches",
        "holding",
        "includeheaders",
        "includekey",
        "includetimestamptype",
        "includevalue",
        "inferrecords",
        "kafkaconsumer.polltimeoutms",
        "landing",
        "maxbytespertrigger",
        "maxoffsetspertrigger",
        "maxtriggerdelay",
        "minoffsetspertrigger",
        "minpartitions",
        "parallelism",
        "positions",
        "rack",
        "sinklanding",
        "startingoffsets",
        "startingoffsetsbytimestamp",
        "startingoffsetsbytimestampstrategy",
        "startingtimestamp",
        "subscribe",
        "subscribepattern",
        "telemetry",
        "topicids",
        "traffic",
        "unknownfields",
        "valueformat",
        "valuemessage",
        "valuenull",
        "valueschema",
        "valuesubject",
        "workers",
        "workerstopic",
    }
)
_CLASSIC_ONLY = (
    "assignor",
    "epsilon",
    "kafka.heartbeat.interval.ms",
    "kafka.partition.assignment.strategy",
    "kafka.session.timeout.ms",
    "workers",
    "workersTopic",
)
_NO_GROUP = "none"  # librdkafka reads nothing without a group's name, and does not join it
# Options of the sink, ignored here: one map may configure both sides of a query.
_PASSED_OVER = frozenset({"path", "format", "tableformat"})
_PREFIXES = (_KAFKA, "storage.", "catalog.", REGISTRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of the source, checked.

    Attributes:
        kafka: client properties with Kafka's names, without the prefix `kafka.`.
        group: the consumer group.
        topics: subscribed names; empty if a pattern is given.
        pattern: a regular expression that whole topic names must match.
        starting: where a stream begins in partitions without a position, and a batch in all partitions.
        ending: where a batch read ends; None for the ends of the logs, and for a stream.
        limits: how much a batch reads.
        positions: address of the Delta table whose offsets are authoritative; None if the sink keeps none.
        storage: options of that table's object store.
        assignor: "hrw" or "shuffled".
        workers: agents per topic: None for all, a number, or by topic name or pattern.
        workers_topic: topic on which the autoscaler publishes numbers; they override all but those given by topic name.
        epsilon: allowed distance of a member's load from the fair share.
        rack: the agent's zone; for the assignment and for fetching from the closest replica (KIP-392).
        agent: the agent's permanent name.
        parallelism: number of tasks of a batch that is large enough to be split.
        min_partitions: smallest number of tasks.
        fail_on_data_loss: stop if records that were to be read are gone.
        headers: add the column `headers`.
        timestamp_type: add the column `timestampType`, which only the raw format has.
        left_out: columns of the record that the rows do not have, of `key` and `value`.
        record_batches: fetch whole record batches from the leaders, where the client properties allow it.
        poll_timeout_s: fail after this time without an expected record.
        join_timeout_s: longest wait for a rebalance at a trigger; after it the last assignment counts.
        value: the format of a value.
        telemetry: a file to which ownership and lag are appended as JSON lines; None for none.
        holding: a file with the current assignment in numbers, for metrics; None for none.
        topic_ids: `<cluster id>/<topic id>` of each topic of a batch read with `fixed_offsets`; None for others.
        traffic: a folder for files with what the tasks received by topic and broker; None for none.
        landing: options of the sink if the tasks write the data files; None if Spark's rows do.
    """

    kafka: Mapping[str, str]
    group: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    starting: OffsetRule = field(default_factory=OffsetRule)
    ending: OffsetRule | None = None
    limits: BatchLimits = field(default_factory=BatchLimits)
    positions: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict)
    assignor: str = "hrw"
    workers: int | Mapping[str, int] | None = None
    workers_topic: str | None = None
    epsilon: float = 0.05
    rack: str | None = None
    agent: str | None = None
    parallelism: int = 1
    min_partitions: int = 1
    fail_on_data_loss: bool = True
    headers: bool = False
    timestamp_type: bool = False
    left_out: frozenset[str] = frozenset()
    record_batches: bool = True
    poll_timeout_s: float = 120.0
    join_timeout_s: float = 10.0
    value: ValueFormat = field(default_factory=ValueFormat)
    telemetry: str | None = None
    holding: str | None = None
    topic_ids: Mapping[str, str] | None = None
    traffic: str | None = None
    landing: Mapping[str, str] | None = None

    @property
    def reads(self) -> str:
        """What a reader with these options subscribes to, and in which group."""
        return f"{self.pattern or ', '.join(self.topics)} in group {self.group!r}"

    @classmethod
    def parse(cls, options: Mapping[str, str], *, stream: bool = True) -> "SourceOptions":
        """Read the options passed to `.option(...)`.

        Args:
            options: texts by name; names are case-insensitive, as in Spark.
            stream: whether they are for a stream; a batch read needs no group, and has an end.

        Raises:
            OptionError: an option is unknown, missing, contradictory or invalid.
        """
        given = {name.lower(): value for name, value in options.items()}
        _refuse_strangers(given)
        kafka = {name[len(_KAFKA) :]: value for name, value in given.items() if name.startswith(_KAFKA)}
        if stream and (wrong := next((name for name in given if name.startswith("ending")), None)):
            raise OptionError(f"option {wrong!r} is for batch reads (spark.read); a stream has no end")
        if not stream and not kafka.get("group.id"):
            kafka["group.id"] = _NO_GROUP
        for name in ("bootstrap.servers", "group.id"):
            if not kafka.get(name):
                raise OptionError(f"kafka-group needs the option 'kafka.{name}'")
        for name in ("session.timeout.ms", "max.poll.interval.ms"):
            number(given, _KAFKA + name, None, most=MOST_MS)
        choice(given, "kafka.isolation.level", ("read_committed", "read_uncommitted"))
        _check_protocol(given)
        topics, pattern = _subscription(given)
        landing = _landing(given.get("landing"))
        parallelism = number(given, "parallelism", len(os.sched_getaffinity(0))) or 1
        rack = given.get("rack") or kafka.get("client.rack")
        if rack:
            kafka["client.rack"] = rack
        agent = given.get("agent") or kafka.get("group.instance.id")
        kafka.setdefault("client.id", f"azimuth.{agent or kafka['group.id']}")
        return cls(
            kafka=kafka,
            group=group_name(kafka["group.id"]),
            topics=topics,
            pattern=pattern,
            starting=starting(given),
            ending=None if stream else ending(given),
            limits=batch_limits(given, parallelism),
            positions=_positions(given.get("positions")),
            storage={
                name.removeprefix("storage."): value
                for name, value in given.items()
                if name.startswith(("storage.", "catalog."))
            },
            assignor=_assignor(given),
            workers=_workers(given.get("workers")),
            workers_topic=_workers_topic(given),
            epsilon=fraction(given, "epsilon", 0.05),
            rack=rack or None,
            agent=agent,
            parallelism=parallelism,
            min_partitions=number(given, "minPartitions", 1) or 1,
            fail_on_data_loss=flag(given, "failOnDataLoss", default=True),
            headers=flag(given, "includeHeaders", default=False),
            timestamp_type=_timestamp_type(given),
            left_out=left_out(given),
            record_batches=flag(given, "fetchRecordBatches", default=True),
            poll_timeout_s=(number(given, "kafkaConsumer.pollTimeoutMs", 120_000, most=MOST_MS) or 120_000) / 1000,
            value=value_format(given, topics, landing),
            telemetry=given.get("telemetry") or None,
            holding=given.get("holding") or None,
            topic_ids=None if stream else topic_ids(given),
            traffic=given.get("traffic") or None,
            landing=landing,
        )

    @property
    def fetch(self) -> FetchSettings:
        """Settings of the tasks' reading."""
        return FetchSettings(
            kafka=self.kafka,
            headers=self.headers,
            timestamp_type=self.timestamp_type,
            fail_on_data_loss=self.fail_on_data_loss,
            poll_timeout_s=self.poll_timeout_s,
            record_batches=self.record_batches,
            traffic=self.traffic,
        )

    @property
    def session_timeout_s(self) -> float:
        """The time without a heartbeat after which the group reassigns the partitions."""
        return self._seconds("session.timeout.ms", 45_000)

    @property
    def max_poll_interval_s(self) -> float:
        """The time without a trigger after which the reader leaves the group."""
        return self._seconds("max.poll.interval.ms", 300_000)

    def _seconds(self, name: str, default_ms: int) -> float:
        return (number(self.kafka, name, default_ms) or default_ms) / 1000


def _refuse_strangers(given: Mapping[str, str]) -> None:
    for name in given:
        if name in _REFUSED:
            raise OptionError(f"option {name!r} cannot be set: {_REFUSED[name]}")
        if name in _KNOWN | _PASSED_OVER or name.startswith(_PREFIXES):
            continue
        known = proposal(name, _KNOWN) or f"known are kafka.*, storage.* and {sorted(_KNOWN)}"
        raise OptionError(f"kafka-group has no option {name!r}; {known}")


def _subscription(given: Mapping[str, str]) -> tuple[tuple[str, ...], str | None]:
    topics = tuple(sorted({name.strip() for name in given.get("subscribe", "").split(",") if name.strip()}))
    pattern = given.get("subscribepattern", "").strip() or None  # trimmed, as in Spark
    if bool(topics) == bool(pattern):
        raise OptionError("kafka-group needs one of the options 'subscribe' (topics) and 'subscribePattern' (a regex)")
    try:
        re.compile(pattern or "")
    except NO_PATTERN as error:
        raise OptionError(f"option 'subscribePattern': {pattern!r} is not a regular expression: {error}") from error
    return topics, pattern


def _positions(text: str | None) -> str | None:
    if text:
        addresses(text, "option 'positions'")
    return text or None


def _workers(text: str | None) -> int | Mapping[str, int] | None:
    if not text:
        return None
    value = json_value(text, "workers")
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, dict) and value and all(type(n) is int and n >= 1 for n in value.values()):
        return value
    raise OptionError(f"option 'workers': {text!r}, need a number of 1 or more or {{topic or pattern: number}}")


def _workers_topic(given: Mapping[str, str]) -> str | None:
    name = given.get("workerstopic") or None
    if name is None:
        return None
    from assignors.clients import topic_name

    try:
        return topic_name(name)
    except ValueError as error:
        raise OptionError(f"option 'workersTopic': {error}") from error


def _assignor(given: Mapping[str, str]) -> str:
    name = choice(given, "assignor", ("hrw", "shuffled"))
    for option in ("workers", "workersTopic"):
        if name == "shuffled" and given.get(option.lower()):
            raise OptionError(f"option {option!r}: the assignor 'shuffled' gives a topic to all, take 'hrw'")
    return name


def _check_protocol(given: Mapping[str, str]) -> None:
    """Refuse options of the members' assignor if the broker assigns (KIP-848), and options of the broker's if not."""
    protocol = choice(given, "kafka.group.protocol", ("classic", "consumer"))
    if protocol == "classic":
        if "kafka.group.remote.assignor" in given:
            raise OptionError("option 'kafka.group.remote.assignor' needs kafka.group.protocol=consumer")
        return
    for name in _CLASSIC_ONLY:
        if name.lower() in given:
            raise OptionError(
                f"option {name!r} cannot be set with kafka.group.protocol=consumer: the broker assigns, by "
                "kafka.group.remote.assignor and its own properties"
            )


def _timestamp_type(given: Mapping[str, str]) -> bool:
    asked = flag(given, "includeTimestampType", default=False)
    if asked and choice(given, "valueFormat", FORMATS) != "raw":
        raise OptionError(
            "option 'includeTimestampType' is for valueFormat=raw: decoded columns may have the name timestampType"
        )
    return asked


def left_out(given: Mapping[str, str]) -> frozenset[str]:
    """Return the columns of the record that `includeKey` and `includeValue` leave out.

    Raises:
        OptionError: decoded values have no column `value`.
    """
    if not flag(given, "includeValue", default=True) and choice(given, "valueFormat", FORMATS) != "raw":
        raise OptionError("option 'includeValue' is for valueFormat=raw: leave columns out of valueSchema instead")
    return frozenset(name for name in ("key", "value") if not flag(given, f"include{name.title()}", default=True))


def _landing(text: str | None) -> Mapping[str, str] | None:
    if not text:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        # The message leaves the text out, because it contains the keys of the object store.
        raise OptionError("option 'landing': need a JSON object with the options of the sink, as texts")
    return value
