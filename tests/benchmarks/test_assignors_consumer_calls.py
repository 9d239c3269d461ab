"""The calls of GroupConsumer beside those of confluent-kafka's consumer with the same settings, and both when idle.

All are members of a group of their own, read the same topic, and go back to its beginning before each round. A rate is
records for each second of CPU time of the thread that calls, because the time of the fetch depends on the machine's
load; the report has the elapsed times, too.

Single rounds of two bare consumers differ by up to a third in either direction, so a second bare consumer runs beside
both: the ratio of the two bare ones is what the machine's noise alone makes of a median.
"""

import gc
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from assignors import GroupConsumer, HRWAssignor
from assignors.consumer.split_configuration import FETCHING
from spark_sink.demo.cluster import Cluster
from tests.benchmarks.assignors_report import save

Settings = dict[str, str | int | float | bool]


class SecondConsumer(Consumer):
    """The bare client again: its ratio to the first one is noise."""


pytestmark = pytest.mark.benchmark
ROUNDS = 21
PASSES = 3  # of each call in a round
PARTITIONS = 6
RECORDS = 120_000
IDLE_S = 30.0
KINDS = (GroupConsumer, Consumer, SecondConsumer)
AT_ONCE = {"poll": 0, "consume(1)": 1, "consume(100)": 100, "consume(1000)": 1000, "consume(10000)": 10_000}


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Servers, and a topic with records of 100 bytes."""
    name = f"calls-{uuid.uuid4().hex[:6]}"
    servers: Settings = {"bootstrap.servers": cluster.bootstrap_servers}
    fill(servers, name)
    yield cluster.bootstrap_servers, name
    admin = AdminClient(servers)
    admin.delete_topics([name])[name].result(60)


def fill(servers: Settings, name: str) -> None:
    """Create the topic with its records. The clients end with the call: an idle client's threads take CPU, too."""
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(60)
    limits: Settings = {"queue.buffering.max.messages": RECORDS}  # all of them: the default is less
    producer = Producer({**servers, "linger.ms": 50, **limits})
    for number in range(RECORDS):
        producer.produce(name, b"x" * 100, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(120) == 0


def joined(kind: type, topic: tuple[str, str]) -> Any:
    """A consumer that owns all partitions."""
    servers, name = topic
    config = {"bootstrap.servers": servers, "group.id": f"{kind.__name__}-{uuid.uuid4().hex[:8]}", **FETCHING}
    one = kind(config, assignors=[HRWAssignor(agent="a")]) if kind is GroupConsumer else kind(config)
    one.subscribe([name])
    until = time.monotonic() + 120
    while len(one.assignment()) < PARTITIONS or not rewound(one, name):
        assert time.monotonic() < until
        one.poll(0.1)
    return one


def rewound(one: Any, name: str) -> bool:
    """Go back to the beginning; False while the bare client cannot, because it has not begun to fetch."""
    try:
        for partition in range(PARTITIONS):
            one.seek(TopicPartition(name, partition, OFFSET_BEGINNING))
    except KafkaException:
        return False
    return True


def drain(one: Any, at_once: int) -> Callable[[], int]:
    """A function that reads, and returns the number of records."""
    poll, consume = one.poll, one.consume
    return (lambda: len(consume(at_once, 1.0))) if at_once else (lambda: poll(1.0) is not None)


def seconds(one: Any, name: str, at_once: int) -> tuple[float, float]:
    """CPU time of this thread, and elapsed time, to read all records."""
    assert rewound(one, name)
    read = drain(one, at_once)
    count = 0
    gc.disable()  # a collection goes through all objects of the process, and falls into either's time by chance
    cpu, wall = time.thread_time(), time.perf_counter()
    while count < RECORDS:
        count += read()
    found = time.thread_time() - cpu, time.perf_counter() - wall
    gc.enable()
    return found


def test_rate_of_each_call(topic: tuple[str, str]) -> None:
    """Medians of interleaved rounds; a ratio above 1 means that GroupConsumer is faster."""
    rounds = [one_round(topic, KINDS[number % 3 :] + KINDS[: number % 3]) for number in range(ROUNDS)]
    figures = {call: of_call([one[call] for one in rounds]) for call in AT_ONCE}
    save("group consumer: calls", {"records": RECORDS, "rounds": ROUNDS, "passes": PASSES, "calls": figures})


def one_round(topic: tuple[str, str], kinds: Sequence[type]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the seconds of each call, by the name of the class.

    Each round has new consumers, and each class is first in every third round: of two consumers of one class with the
    same settings, one may be up to 12 % faster than the other for as long as they live.
    """
    consumers = {kind.__name__: joined(kind, topic) for kind in kinds}
    for one in consumers.values():
        seconds(one, topic[1], 0)  # the first pass of a new client costs more than later ones
    found = {call: of_passes(consumers, topic[1], at_once) for call, at_once in AT_ONCE.items()}
    for one in consumers.values():
        one.close()
    return found


def of_passes(consumers: dict[str, Any], name: str, at_once: int) -> dict[str, tuple[float, float]]:
    """Return the medians of the seconds of each consumer, which take turns."""
    passes = [{kind: seconds(one, name, at_once) for kind, one in consumers.items()} for _ in range(PASSES)]
    return {
        kind: (statistics.median(one[kind][0] for one in passes), statistics.median(one[kind][1] for one in passes))
        for kind in consumers
    }


def of_call(rounds: Sequence[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    """Return the figures of one call in all rounds."""
    ratios = [one["Consumer"][0] / one["GroupConsumer"][0] for one in rounds]
    return {
        "ratio": statistics.median(ratios),
        "ratio of two bare clients": statistics.median(one["Consumer"][0] / one["SecondConsumer"][0] for one in rounds),
        "ratios": [round(one, 2) for one in ratios],
        "elapsed ratio": statistics.median(one["Consumer"][1] / one["GroupConsumer"][1] for one in rounds),
        **{
            f"records a CPU second, {shown}": round(RECORDS / statistics.median(one[name][0] for one in rounds))
            for name, shown in (("GroupConsumer", "GroupConsumer"), ("Consumer", "confluent-kafka"))
        },
    }


@pytest.mark.parametrize("kind", [GroupConsumer, Consumer], ids=lambda kind: kind.__name__)
def test_idle_consumer(topic: tuple[str, str], kind: type) -> None:
    """CPU time of the process, in percent of a core, while a program polls an empty topic with a timeout of 1 s."""
    one = joined(kind, topic)
    while one.poll(3.0) is not None:
        pass
    cpu, until = time.process_time(), time.monotonic() + IDLE_S
    begun = time.monotonic()
    while time.monotonic() < until:
        one.poll(1.0)
    share = (time.process_time() - cpu) / (time.monotonic() - begun)
    one.close()
    save(f"group consumer: idle {kind.__name__}", {"percent": 100 * share, "seconds": IDLE_S})
