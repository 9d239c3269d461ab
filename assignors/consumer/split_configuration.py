"""Splits one configuration with librdkafka's names into settings of the member and of the fetching client."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from assignors.clients.kafka_python_names import KAFKA_PYTHON_NAMES, bootstrap_list
from assignors.clients.kafka_python_security import kafka_python_security
from assignors.clients.librdkafka_values import FALSE, TRUE, flat, is_readable, text, whole_number
from assignors.consumer.consumer_errors import ArgumentError, ConsumerError
from assignors.errors import MembershipError

# librdkafka stops fetching for `fetch.queue.backoff.ms` whenever its queue is full. With its defaults one process read
# 3.4 million records in 24 s, with these in 4.8 s.
FETCHING: Final[Mapping[str, object]] = {
    "fetch.message.max.bytes": 2_000_000,
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 250,
    "queued.max.messages.kbytes": 131_072,
    "queued.min.messages": 200_000,
}
_SAME: Final = (
    "allow.auto.create.topics",
    "client.id",
    "client.rack",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "sasl.mechanism",
    "security.protocol",
)
_MEMBER: Final = ("group.instance.id", "heartbeat.interval.ms", "max.poll.interval.ms", "session.timeout.ms")
_OURS: Final = (
    "auto.commit.interval.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "group.protocol",
    "group.remote.assignor",
)
_CLASSIC_ONLY: Final = ("heartbeat.interval.ms", "partition.assignment.strategy", "session.timeout.ms")
_INSTEAD: Final = {
    "group.remote.assignor": "it needs group.protocol=consumer; in the classic protocol give assignors=[...]",
    "heartbeat.interval.ms": "with group.protocol=consumer the broker decides, by group.consumer.heartbeat.interval.ms",
    "partition.assignment.strategy": "with group.protocol=consumer the broker assigns, by group.remote.assignor",
    "session.timeout.ms": "with group.protocol=consumer the broker decides, by group.consumer.session.timeout.ms",
}
_SERVERS: Final = ("bootstrap.servers", "metadata.broker.list")
_RESETS: Final = dict.fromkeys(("smallest", "earliest", "beginning"), OFFSET_BEGINNING) | dict.fromkeys(
    ("largest", "latest", "end"), OFFSET_END
)
# librdkafka's ranges: it checks these only in the client that joins, and kafka-python checks none.
_RANGES_MS: Final = {
    "auto.commit.interval.ms": (0, 86_400_000),
    "heartbeat.interval.ms": (1, 3_600_000),
    "max.poll.interval.ms": (1, 86_400_000),
    "session.timeout.ms": (1, 3_600_000),
}
# As in librdkafka, except that other texts do not match: librdkafka drops their rest, and reads 5m as 5 ms, 6e3 as 6.
_WHOLE: Final = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+))(?:\.0*)?\s*", re.ASCII)
_NEVER_MS: Final = 2**31 - 1
_FETCH_WAIT_MS: Final = 500  # kafka-python's default; it refuses a shorter timeout, but the member fetches nothing
_SESSION_MS: Final = 45_000
_COMMIT_MS: Final = 20_000  # as for a member's commit: brokers replace a dead coordinator within 9 s by default
_MAX_POLL_MS: Final = 300_000
_AUTO_COMMIT_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The configuration of each client, and of the consumer itself.

    Attributes:
        member: settings of kafka-python's KafkaConsumer.
        broker_assigned: properties of librdkafka's member if the broker assigns (KIP-848); None if the members do.
        fetching: properties of librdkafka's consumer.
        reset: the logical offset at which to begin if the group has no committed offset; None if that is an error.
        auto_store: whether a delivered record counts as processed; else `store_offsets` marks it.
        auto_commit_s: seconds between two automatic commits, None for none.
        max_poll_s: a program that does not poll for this many seconds loses its partitions.
        on_commit: called with (error or None, partitions) after each asynchronous commit; librdkafka's consumer calls
            it for commits outside of a group, except for the last automatic one.
    """

    member: Mapping[str, Any]
    broker_assigned: Mapping[str, Any] | None
    fetching: Mapping[str, Any]
    reset: int | None
    auto_store: bool
    auto_commit_s: float | None
    max_poll_s: float
    on_commit: Callable[[ConsumerError | None, list[Any]], object] | None


def checked(config: object) -> Mapping[str, Any]:
    """Return a configuration.

    Raises:
        ArgumentError: it is not a mapping.
    """
    if not isinstance(config, Mapping):
        raise ArgumentError(f"config={config!r}: need a mapping of librdkafka's properties")
    return config


def read(config: Mapping[str, Any], member: Mapping[str, Any]) -> Configuration:
    """Divide a configuration of confluent-kafka's Consumer.

    Args:
        config: librdkafka's properties.
        member: settings of kafka-python's consumer that are added to, or replace, the translated ones.

    Raises:
        ArgumentError: no group or servers, a value of the wrong type, or a property that is set in another way here.
    """
    config = flat(config)
    _refuse_unreadable(config)
    servers = _servers(config)
    if not text(config.get("group.id")):  # librdkafka's client would end the process
        raise ArgumentError("group.id is missing: a member of a group needs it")
    broker_assigns = _broker_assigns(config)
    if broker_assigns and member:
        raise ArgumentError(
            f"member={sorted(member)}: these are settings of kafka-python, which group.protocol=consumer does not use"
        )
    if not broker_assigns:
        _refuse_issuer(config)
    on_commit = config.get("on_commit")
    if on_commit is not None and not callable(on_commit):
        raise ArgumentError(f"on_commit={on_commit!r}: need a function of an error and partitions")
    if (logger := config.get("logger")) is not None and not callable(getattr(logger, "log", None)):
        raise ArgumentError(f"logger={logger!r}: need a logging.Logger, or another object with its method `log`")
    max_poll_ms = _number("max.poll.interval.ms", config.get("max.poll.interval.ms", _MAX_POLL_MS))
    session_ms = _number("session.timeout.ms", config.get("session.timeout.ms", _SESSION_MS))
    if max_poll_ms < session_ms and not broker_assigns:
        raise ArgumentError(f"max.poll.interval.ms={max_poll_ms}: need session.timeout.ms={session_ms} or more")
    auto_commit_ms = _number("auto.commit.interval.ms", config.get("auto.commit.interval.ms", _AUTO_COMMIT_MS))
    auto = _truth(config, "enable.auto.commit") and auto_commit_ms > 0
    fetching = {name: value for name, value in config.items() if name not in {*_MEMBER, *_OURS}}
    return Configuration(
        member={**_translated(config, servers), "max_poll_interval_ms": max_poll_ms, **member},
        broker_assigned=_broker_assigned(config) if broker_assigns else None,
        fetching={
            **FETCHING,
            **fetching,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            # This client joins no group, but librdkafka keeps a commit without a coordinator for this time.
            "session.timeout.ms": min(session_ms, _COMMIT_MS),
        },
        reset=_reset(config),
        auto_store=_truth(config, "enable.auto.offset.store"),
        auto_commit_s=auto_commit_ms / 1000 if auto else None,
        max_poll_s=max_poll_ms / 1000,
        on_commit=on_commit,
    )


def _refuse_unreadable(config: Mapping[str, Any]) -> None:
    """Refuse texts that librdkafka reads in part or not at all.

    A group of such a name ends the process, and under other names the two clients would be two users or members. The
    error does not show the value, which may be a password.
    """
    for name, value in config.items():
        if not callable(value) and not is_readable(value):
            raise ArgumentError(
                f"{name}: its value has a null character or half a letter (a lone surrogate): remove it"
            )


def _reset(config: Mapping[str, Any]) -> int | None:
    """Read auto.offset.reset; the last of its two names counts."""
    given = [value for name, value in config.items() if name in {"auto.offset.reset", "topic.auto.offset.reset"}]
    return _RESETS.get(text(given[-1]).lower() or "latest") if given else OFFSET_END


def _servers(config: Mapping[str, Any]) -> str:
    """Read the addresses.

    Raises:
        ArgumentError: there are none, or it is a list, as kafka-python takes it.
    """
    found = [(name, servers) for name, servers in config.items() if name in _SERVERS and servers]
    if not found:
        raise ArgumentError("bootstrap.servers is missing: a member of a group needs it")
    name, servers = found[-1]  # as in librdkafka
    if not isinstance(servers, str):
        raise ArgumentError(f"{name}={servers!r}: need one text, with commas between the addresses")
    return servers


def _broker_assigns(config: Mapping[str, Any]) -> bool:
    """Read the protocol, and refuse the properties of the other one.

    Raises:
        ArgumentError: an unknown protocol, or a property that only the other protocol has.
    """
    protocol = text(config.get("group.protocol", "classic")).lower()
    if protocol not in {"classic", "consumer"}:
        raise ArgumentError(f"group.protocol={config['group.protocol']!r}, need classic or consumer")
    for name in _CLASSIC_ONLY if protocol == "consumer" else ("group.remote.assignor",):
        if name in config:
            raise ArgumentError(f"{name}={config[name]!r}: {_INSTEAD[name]}")
    if protocol == "classic" and "partition.assignment.strategy" in config:
        name = "partition.assignment.strategy"
        raise ArgumentError(f"{name}={config[name]!r}: assignors=[...] takes its place here")
    return protocol == "consumer"


def _refuse_issuer(config: Mapping[str, Any]) -> None:
    """Refuse tokens that librdkafka asks an issuer for: kafka-python's member cannot get them."""
    method = config.get("sasl.oauthbearer.method")
    if text(method).lower() not in {"default", ""}:
        raise ArgumentError(
            f"sasl.oauthbearer.method={method!r}: a member with group.protocol=classic cannot request tokens from an "
            "issuer; return them in oauth_cb, or use group.protocol=consumer"
        )


def _broker_assigned(config: Mapping[str, Any]) -> dict[str, Any]:
    left_out = {*_OURS, *FETCHING, "on_commit", "error_cb", "stats_cb", "statistics.interval.ms", "throttle_cb"}
    return {name: value for name, value in config.items() if name not in left_out} | {
        name: config[name] for name in ("group.protocol", "group.remote.assignor") if name in config
    }


def _number(name: str, value: object) -> int:
    if (found := _WHOLE.fullmatch(str(value))) is None:
        raise ArgumentError(f"{name}={value!r}, need a whole number of milliseconds")
    read = whole_number(found[1], 0)
    least, most = _RANGES_MS.get(name, (read, read))
    if not least <= read <= most:
        raise ArgumentError(f"{name}={value!r}, need {least} to {most}")
    return read


def _truth(config: Mapping[str, Any], name: str) -> bool:
    """Read a boolean as librdkafka does: any other word is an error, not False."""
    said = str(config.get(name, True)).lower()
    if said not in TRUE | FALSE:
        raise ArgumentError(f"{name}={config[name]!r}, need true or false")
    return said in TRUE


def _translated(config: Mapping[str, Any], servers: str) -> dict[str, Any]:
    known: dict[str, Any] = {
        "bootstrap_servers": bootstrap_list(servers),
        "group_id": text(config["group.id"]),
        "isolation_level": text(config.get("isolation.level")).lower() or "read_committed",  # librdkafka's default
    }
    for name, value in config.items():
        same = name.replace(".", "_") if name in _SAME or name in _MEMBER else None
        if (known_as := KAFKA_PYTHON_NAMES.get(name, same)) is not None:
            # As text, because kafka-python sends no numbers as names and passwords.
            known[known_as] = _number(name, value) if name.endswith(".ms") else text(value)
    known = {name: value for name, value in known.items() if value != ""}  # then its default counts
    if "security_protocol" in known:
        known["security_protocol"] = known["security_protocol"].upper()
    if known.get("metadata_max_age_ms", 0) < 0:
        known["metadata_max_age_ms"] = _NEVER_MS  # as in librdkafka; kafka-python would ask without a pause
    if known.get("request_timeout_ms", _NEVER_MS) <= _FETCH_WAIT_MS:
        known["fetch_max_wait_ms"] = known["request_timeout_ms"] - 1
    if "allow_auto_create_topics" in known:
        known["allow_auto_create_topics"] = _truth(config, "allow.auto.create.topics")
    try:
        return known | kafka_python_security(config)
    except MembershipError as error:
        raise ArgumentError(str(error)) from error
