"""One configuration for two clients: librdkafka's names in, settings for the member and for the fetching out."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from assignors.clients.property_names import KAFKA_PYTHON_NAMES
from assignors.errors import MembershipError

# librdkafka stops fetching for `fetch.queue.backoff.ms` whenever its queue is full. With its defaults one process read
# 3.4 million records in 24 s, with these in 4.8 s.
FETCHING: Final[Mapping[str, object]] = {
    "fetch.message.max.bytes": 2_000_000,
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 131_072,
    "queued.min.messages": 200_000,
}
_BOTH: Final = ("client.id", "client.rack", "sasl.mechanism", "security.protocol")
_MEMBER: Final = ("group.instance.id", "heartbeat.interval.ms", "max.poll.interval.ms", "session.timeout.ms")
_OURS: Final = ("auto.commit.interval.ms", "enable.auto.commit", "enable.auto.offset.store", "on_commit")
_RESETS: Final = dict.fromkeys(("smallest", "earliest", "beginning"), OFFSET_BEGINNING) | dict.fromkeys(
    ("largest", "latest", "end"), OFFSET_END
)
_MAX_POLL_MS: Final = 300_000
_AUTO_COMMIT_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What each side is configured with.

    Attributes:
        member: settings of kafka-python's KafkaConsumer.
        fetching: properties of librdkafka's consumer.
        reset: the logical offset to begin at where the group has committed none; None where that is an error.
        auto_store: whether what is delivered counts as done; else what `store_offsets` says.
        auto_commit_s: seconds between two commits of what was delivered, None for none.
        max_poll_s: a program that asks for nothing for so long is taken for dead.
        on_commit: called with (error or None, partitions) after each asynchronous commit.
    """

    member: Mapping[str, Any]
    fetching: Mapping[str, Any]
    reset: int | None
    auto_store: bool
    auto_commit_s: float | None
    max_poll_s: float
    on_commit: Callable[[Exception | None, list[Any]], object] | None


def read(config: Mapping[str, Any], member: Mapping[str, Any]) -> Configuration:
    """Divide a configuration of confluent-kafka's Consumer.

    Args:
        config: librdkafka's properties.
        member: settings of kafka-python's consumer that are added, or replace what was translated.

    Raises:
        MembershipError: no group or servers, or a property that has another place here.
    """
    for name in ("bootstrap.servers", "group.id"):
        if not config.get(name):
            raise MembershipError(f"{name} is missing: a member of a group needs it")
    for name in ("partition.assignment.strategy", "group.protocol", "group.remote.assignor"):
        if name in config:
            raise MembershipError(f"{name}={config[name]!r}: who reads what is chosen by assignors=[...] here")
    max_poll_ms = _number("max.poll.interval.ms", config.get("max.poll.interval.ms", _MAX_POLL_MS))
    auto_commit_ms = _number("auto.commit.interval.ms", config.get("auto.commit.interval.ms", _AUTO_COMMIT_MS))
    auto = _truth(config, "enable.auto.commit") and auto_commit_ms > 0
    fetching = {name: value for name, value in config.items() if name not in {*_MEMBER, *_OURS}}
    return Configuration(
        member={**_translated(config), "max_poll_interval_ms": max_poll_ms, **member},
        fetching={**FETCHING, **fetching, "enable.auto.commit": False, "enable.auto.offset.store": False},
        reset=_RESETS.get(str(config.get("auto.offset.reset", "latest")).lower()),
        auto_store=_truth(config, "enable.auto.offset.store"),
        auto_commit_s=auto_commit_ms / 1000 if auto else None,
        max_poll_s=max_poll_ms / 1000,
        on_commit=config.get("on_commit"),
    )


def pattern_of(topics: Iterable[str]) -> str:
    """Join names and patterns (they begin with ^, and match beginnings, as librdkafka has it) to one of whole names.

    Raises:
        MembershipError: no list of names, an empty one, or a pattern that is no regular expression.
    """
    # A text is a list of letters too, and "^flights" would be a pattern for every topic there is.
    wanted = topics if isinstance(topics, str) else list(topics)
    if not wanted or isinstance(wanted, str) or not all(isinstance(one, str) and one for one in wanted):
        raise MembershipError(f"subscribe({wanted!r}): need a list of topic names, or of patterns that begin with ^")
    for one in wanted:
        try:
            re.compile(one if one.startswith("^") else "")
        except re.error as error:
            raise MembershipError(f"subscribe(): {one!r} is no regular expression ({error})") from error
    return "|".join(f"(?:{one}).*" if one.startswith("^") else re.escape(one) for one in sorted(wanted))


def _number(name: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise MembershipError(f"{name}={value!r}, need a whole number of milliseconds") from error


def _truth(config: Mapping[str, Any], name: str) -> bool:
    """Read what librdkafka takes for true."""
    return str(config.get(name, True)).lower() in {"true", "t", "1"}


def _translated(config: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {
        "bootstrap_servers": str(config["bootstrap.servers"]).split(","),
        "group_id": config["group.id"],
        "isolation_level": config.get("isolation.level", "read_committed"),  # librdkafka's default
    }
    for name, value in config.items():
        if name in _BOTH or name in _MEMBER:
            known[name.replace(".", "_")] = _number(name, value) if name.endswith(".ms") else value
        elif (renamed := KAFKA_PYTHON_NAMES.get(name)) is not None:
            known[renamed] = _number(name, value) if name.endswith(".ms") else value
    if "security_protocol" in known:
        known["security_protocol"] = str(known["security_protocol"]).upper()
    return known
