"""Calls that need no records: arguments, configuration, and every call after close, as in confluent_kafka.Consumer."""

import copy
import logging
import pickle
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.consumer.bare_bench import COOPERATIVE, SHORT, Bench, Case, at, attempt, check, plain


def calls(name: str, *arguments: Any, **named: Any) -> Case:
    """One call on a consumer that has no subscription."""
    return lambda bench: attempt(lambda: getattr(bench.make(), name)(*arguments, **named))


def configured(name: str, value: object) -> Case:
    """A consumer with this property, or its error."""
    return lambda bench: attempt(lambda: bench.make(**{name: value}).close())


def _ends_of_block(bench: Bench) -> list[str]:
    """What a block calls at its end: the close of a program's subclass may take other arguments."""
    called: list[str] = []
    kind: Any = bench.kind
    own: Any = type("Own", (kind,), {"close": lambda _: called.append("close")})
    with own(_config(bench)) as one:
        pass
    kind.close(one)
    return called


def _config(bench: Bench) -> dict[str, object]:
    return {"bootstrap.servers": bench.cluster.bootstrap_servers, "group.id": "own", "log_level": 0}


def constructed(**more: object) -> Case:
    """A consumer of a configuration with these as they are, or its error."""
    return lambda bench: attempt(lambda: bench.kind({**_config(bench), **more}).close())


CASES: dict[str, Case] = {
    "poll without a subscription": calls("poll", 0.01),
    "consume without a subscription": calls("consume", 1, 0.01),
    "assignment without a subscription": calls("assignment"),
    "consume of nothing": calls("consume", 0, 0.01),
    "consume of too many": calls("consume", 1_000_001, 0.01),
    "consume of fewer than nothing": calls("consume", -1, 0.01),
    "a commit of a record and of offsets": calls("commit", message=1, offsets=[at(0, 1)]),
    "an asynchronous commit of nothing": calls("commit"),
    "subscribe to a text": calls("subscribe", "t"),
    "subscribe to nothing": calls("subscribe", []),
    "subscribe to an empty name": calls("subscribe", [""]),
    "subscribe to a broken pattern": calls("subscribe", ["^("]),
    "subscribe with a callback that is none": calls("subscribe", ["t"], on_assign=5),
    "unsubscribe from nothing": calls("unsubscribe"),
    "unassign of nothing": calls("unassign"),
    "store without arguments": calls("store_offsets"),
    "pause what is not assigned": calls("pause", [at(0)]),
    "resume what is not assigned": calls("resume", [at(0)]),
    "watermarks": calls("get_watermark_offsets", at(1), timeout=10),
    "watermarks of no partition": calls("get_watermark_offsets", at(9), timeout=10),
    "cluster id": calls("cluster_id", 10),
    "credentials": calls("set_sasl_credentials", "me", "secret"),
    "position of what is not assigned": lambda bench: plain(bench.make().position([at(0)])),
    "offsets for times": lambda bench: plain(bench.make().offsets_for_times([at(0, 0)], timeout=10)),
    "topics": lambda bench: sorted(bench.make().list_topics(timeout=10).topics),
    "member id outside of a group": lambda bench: bool(bench.make().memberid()),
}
_WRONG: dict[str, tuple[Any, ...]] = {
    "poll": ("x",),
    "consume": (1.5, 0.01),
    "subscribe": (5,),
    "commit": (5,),
    "store_offsets": (5,),
    "assign": ("x",),
    "incremental_assign": ("x",),
    "pause": ([1],),
    "resume": ("x",),
    "seek": ("x",),
    "position": ([1],),
    "committed": ([1],),
    "get_watermark_offsets": ("x",),
    "offsets_for_times": ([1],),
    "set_sasl_credentials": (None, None),
    "memberid": (1,),
    "unsubscribe": (1,),
    "close": (1,),
}
_NAMED: dict[str, dict[str, Any]] = {
    "poll": {"timeout": 0.01},
    "consume": {"num_messages": 1, "timeout": 0.01},
    "subscribe": {"topics": ["t"]},
    "commit": {"message": None, "asynchronous": True},
    "pause": {"partitions": [at(0)]},
    "resume": {"partitions": [at(0)]},
    "get_watermark_offsets": {"partition": at(1), "timeout": 10, "cached": False},
    "set_sasl_credentials": {"username": "me", "password": "secret"},
    "cluster_id": {"timeout": 10},
}
CASES |= {f"{name} of another type": calls(name, *given) for name, given in _WRONG.items()}
CASES |= {f"{name} by names": calls(name, **given) for name, given in _NAMED.items()}
CASES |= {
    "poll of None": calls("poll", None),
    "commit of a text": calls("commit", offsets="x"),
    "a name that no argument has": calls("subscribe", ["t"], on_revoked=None),
    "a configuration that is none": lambda bench: attempt(lambda: bench.kind([1])),
    "no configuration": lambda bench: attempt(bench.kind),
    "a copy": lambda bench: attempt(lambda: copy.copy(bench.make())),
    "a pickle": lambda bench: attempt(lambda: pickle.dumps(bench.make())),
    "length": lambda bench: attempt(lambda: len(bench.make())),
    "iteration": lambda bench: attempt(lambda: iter(bench.make())),
    "truth": lambda bench: bool(bench.make()),
    "equality": lambda bench: bench.make() == bench.make(),
    "a with block of a subclass that has a close": lambda bench: attempt(lambda: _ends_of_block(bench)),
    "a subclass": lambda bench: attempt(lambda: type("Own", (bench.kind,), {})(_config(bench)).close()),
    "a logger in the configuration": constructed(logger=logging.getLogger("l")),
    "None as a logger in the configuration": constructed(logger=None),
    "properties as keywords": lambda bench: attempt(lambda: bench.kind(**_config(bench)).close()),
    "keywords besides a configuration": lambda bench: attempt(
        lambda: bench.kind(_config(bench), **{"client.id": "c"}).close()
    ),
    "keywords that override a configuration": lambda bench: attempt(
        lambda: bench.kind({**_config(bench), "auto.offset.reset": "no"}, **{"auto.offset.reset": "earliest"}).close()
    ),
    "a deprecated configuration of topics": constructed(**{"default.topic.config": {"auto.offset.reset": "earliest"}}),
    "servers under their other name": lambda bench: attempt(
        lambda: bench.kind({"metadata.broker.list": bench.cluster.bootstrap_servers, "group.id": "own"}).close()
    ),
}
CASES |= {
    f"{given!r} as {name}": constructed(**{name: given})
    for name in ("error_cb", "stats_cb", "throttle_cb", "oauth_cb", "on_commit")
    for given in (5, None)
}
CASES |= {
    f"{name}={given!r}": constructed(**{name: given})
    for name, given in {"enable.partition.eof": "no way", "isolation.level": "dirty", "client.rack": 5}.items()
}
for _name, _value in {
    "enable.auto.commit": "yes",
    "enable.auto.offset.store": 2,
    "auto.offset.reset": "none",
    "group.id": None,
    "no.such.property": 1,
    "max.poll.interval.ms": "5m",
    "session.timeout.ms": "soon",
    "heartbeat.interval.ms": 0,
    "auto.commit.interval.ms": -1,
}.items():
    CASES[f"configuration {_name}={_value}"] = configured(_name, _value)
_MS: dict[str, tuple[Any, ...]] = {
    "max.poll.interval.ms": (
        "60000.0",
        60000.0,
        "0xEA60",
        " 60000 ",
        86_400_000,
        86_400_001,
        2**31,
        10**12,
        "\u0666000",
    ),
    "session.timeout.ms": ("6000.0", 6000.0, "0x1770", "+6000", 3_600_001, "", True),
    "heartbeat.interval.ms": ("3000.0", 3000.0, 3_600_000, 3_600_001, 2**31 - 1, -1),
    "auto.commit.interval.ms": ("5000.0", 5000.0, 86_400_000, 86_400_001, 2**31, "\u0666000"),
    "socket.timeout.ms": ("6000.0", 6000.0, 300_001, 2**31, 1),
    "topic.metadata.refresh.interval.ms": ("6000.0", 6000.0, 3_600_001, -1, -2),
    "fetch.wait.max.ms": (300_001, -1, "100.0"),
}
CASES |= {
    f"configuration {name}={value!r}": configured(name, value) for name, values in _MS.items() for value in values
}
for _name, _value in {"enable.auto.commit": "T", "group.protocol": "classic", "auto.offset.reset": "end"}.items():
    CASES[f"configuration {_name}={_value}"] = configured(_name, _value)
_AFTER_CLOSE: dict[str, tuple[Any, ...]] = {
    "poll": (0,),
    "consume": (1, 0),
    "subscribe": (["t"],),
    "unsubscribe": (),
    "assign": ([at(0)],),
    "unassign": (),
    "incremental_assign": ([at(0)],),
    "incremental_unassign": ([at(0)],),
    "assignment": (),
    "position": ([at(0)],),
    "committed": ([at(0)],),
    "commit": (),
    "store_offsets": (None, [at(0, 1)]),
    "seek": (at(0, 1),),
    "pause": ([at(0)],),
    "resume": ([at(0)],),
    "memberid": (),
    "consumer_group_metadata": (),
    "list_topics": (),
    "cluster_id": (),
    "get_watermark_offsets": (at(0),),
    "offsets_for_times": ([at(0, 0)],),
    "set_sasl_credentials": ("me", "secret"),
    "close": (),
}


def every_call_after_close(bench: Bench) -> Any:
    """RuntimeError."""
    one = bench.make()
    one.close()
    return [attempt(partial(getattr(one, name), *given)) for name, given in _AFTER_CLOSE.items()]


def a_commit_outside_of_a_group(bench: Bench) -> Any:
    """Accepted while the group is empty, with its metadata."""
    one = bench.make()
    committed = plain(one.commit(offsets=[at(0, 3, metadata="x")], asynchronous=False))
    return committed and plain(one.committed([at(0), at(1)], 10))


def a_joined_consumer_answers(bench: Bench) -> Any:
    """Assignment, position, member id, metadata of the group."""
    one, _ = bench.joined()
    metadata = one.consumer_group_metadata()
    whole = metadata.startswith(b"CGMDv2:") and metadata.endswith(one.memberid().encode() + b"\0\1")
    return [len(one.assignment()), plain(one.position(one.assignment())), bool(one.memberid()), whole]


def errors_of_partitions_that_are_not_assigned(bench: Bench) -> Any:
    """Seek, position and pause; storing where records are stored automatically."""
    one, _ = bench.joined(records=1)
    other = TopicPartition("u", 0, 40)
    return [
        attempt(lambda: one.seek(at(9, 40))),
        attempt(lambda: plain(one.position([other]))),
        attempt(lambda: one.pause([other])),
        attempt(lambda: one.incremental_unassign([other])),
        attempt(lambda: one.store_offsets(offsets=[at(0, 3)])),
    ]


def a_cooperative_member_gives_up_what_it_does_not_read(bench: Bench) -> Any:
    """A partition of another topic, and one that was given up before."""
    settings: dict[str, Any] = {**SHORT, **COOPERATIVE}
    one, _ = bench.joined(**settings)
    one.incremental_unassign([at(0)])
    others = [TopicPartition("u", 0), at(9), at(0)]
    found = [attempt(partial(one.incremental_unassign, [other])) for other in others]
    one.incremental_assign([at(0)])  # else the bare client cannot leave its group
    return found


CASES |= {
    "a cooperative member gives up what it does not read": a_cooperative_member_gives_up_what_it_does_not_read,
    "every call after close": every_call_after_close,
    "a commit outside of a group": a_commit_outside_of_a_group,
    "a joined consumer answers": a_joined_consumer_answers,
    "errors of partitions that are not assigned": errors_of_partitions_that_are_not_assigned,
}


@pytest.mark.parametrize("name", CASES)
def test_both_consumers_do_the_same(cluster: MockCluster, name: str) -> None:
    """A program changes its class, and nothing else."""
    check(CASES[name], cluster)


def test_every_public_method_of_the_bare_consumer_is_there() -> None:
    """And each is called in the case of calls after close."""
    public = {name for name in dir(Consumer) if not name.startswith("_")}
    assert public <= set(dir(GroupConsumer))
    assert public == set(_AFTER_CLOSE)
