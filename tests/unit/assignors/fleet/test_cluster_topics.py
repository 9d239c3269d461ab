"""The known topics of a cluster while parts of the cluster are away."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from assignors.errors import FleetError
from assignors.fleet import ClusterWatch, Source, any_answers, ask_ids, sight, topic_descriptions
from producer.testing import MockCluster
from tests.silent_broker import silence_used_broker
from tests.waiting import wait_until

SOURCE = Source(name="s", kafka={"bootstrap.servers": "nowhere:1"}, pattern="t.*")
GONE = KafkaError.UNKNOWN_TOPIC_OR_PART
AWAY = KafkaError._TIMED_OUT
DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED


@dataclass
class Partition:
    """Of one topic, without replicas."""

    replicas: tuple[object, ...] = ()


@dataclass
class Description:
    """Of one topic."""

    topic_id: str
    partitions: list[Partition]


@dataclass
class Listing:
    """Of one cluster."""

    topics: dict[str, None]
    cluster_id: str = "c"
    brokers: dict[int, None] = field(default_factory=dict)


@dataclass
class Admin:
    """A cluster's answers: the list of names, ids by name, and errors in place of them."""

    ids: dict[str, str]
    errors: dict[str, int] = field(default_factory=dict)
    lists: bool = True
    listed: list[str] | None = None

    def list_topics(self, timeout: float) -> Listing:
        """From any broker."""
        assert timeout
        if not self.lists:
            raise KafkaException(KafkaError(AWAY))
        return Listing(dict.fromkeys(self.ids if self.listed is None else self.listed))

    def describe_topics(self, names: TopicCollection, request_timeout: float) -> dict[str, Future[Description]]:
        """From the controller."""
        assert request_timeout
        found: dict[str, Future[Description]] = {}
        for name in names.topic_names:
            future = found[name] = Future()
            code = self.errors.get(name, self.errors.get("*", 0 if name in self.ids else GONE))
            if code:
                future.set_exception(KafkaException(KafkaError(code)))
            else:
                future.set_result(Description(self.ids[name], [Partition(), Partition()]))
        return found


def client(admin: Admin) -> AdminClient:
    """Taken for the real one."""
    return cast("AdminClient", admin)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment."""
    now = [100.0]
    monkeypatch.setattr("assignors.fleet.topic_descriptions.time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("code", [AWAY, KafkaError.NOT_CONTROLLER, DENIED], ids=["away", "not controller", "denied"])
def test_topics_stay_while_they_cannot_be_described(code: int) -> None:
    """When a controller was away for a minute, each agent dropped all topics of the cluster, without another fault."""
    admin = Admin({"t1": "i1", "t2": "i2"})
    before = sight(client(admin), SOURCE)
    admin.errors["*"] = code
    for _ in range(5):
        after = sight(client(admin), SOURCE, before)
        assert after.topics == before.topics
        assert after.answers
        (problem,) = after.problems
        assert "2 topics cannot be described ('t1', 't2')" in problem
        before = after
    admin.errors = {}
    assert not sight(client(admin), SOURCE, before).problems


def test_an_answer_is_not_whole_while_a_topic_was_never_described() -> None:
    """Claims of such a topic are not removed: it may exist."""
    admin = Admin({"t1": "i1", "t2": "i2"}, errors={"t2": AWAY})
    first = sight(client(admin), SOURCE)
    assert ([topic.name for topic in first.topics], first.whole) == (["t1"], False)
    admin.errors = {}
    assert sight(client(admin), SOURCE, first).whole


def test_a_topic_is_gone_when_two_answers_some_time_apart_say_so(clock: list[float]) -> None:
    """A broker that has just started lists too few topics; a later answer with another name does not count."""
    admin = Admin({"t1": "i1", "t2": "i2"})
    seen = sight(client(admin), SOURCE)
    del admin.ids["t2"]
    seen = sight(client(admin), SOURCE, seen)
    assert [topic.name for topic in seen.topics] == ["t1", "t2"]
    seen = sight(client(admin), SOURCE, seen)
    assert [topic.name for topic in seen.topics] == ["t1", "t2"], "asked again at once, of the same broker"
    admin.ids["t2"] = "i2"
    seen = sight(client(admin), SOURCE, seen)
    assert not seen.absent, "it is there: an absence begins from the start"
    del admin.ids["t2"]
    seen = sight(client(admin), SOURCE, seen)
    clock[0] += topic_descriptions.ABSENT_S
    seen = sight(client(admin), SOURCE, seen)
    assert [topic.name for topic in seen.topics] == ["t1"]


def test_a_topic_that_was_recreated_is_another_one_at_once() -> None:
    """A broker says so: this is no absence."""
    admin = Admin({"t1": "i1"})
    seen = sight(client(admin), SOURCE)
    admin.ids["t1"] = "i2"
    assert [topic.id for topic in sight(client(admin), SOURCE, seen).topics] == ["i2"]


def test_topics_of_another_cluster_do_not_stay() -> None:
    """The address leads to another cluster now: the known topics do not belong to it."""
    admin = Admin({"t1": "i1"})
    seen = sight(client(admin), SOURCE)
    other = sight(client(Admin({})), SOURCE, topic_descriptions.Sighting(cluster="other", topics=seen.topics))
    assert not other.topics


def test_known_ids_count_while_the_controller_is_away_and_a_broker_lists_the_topic() -> None:
    """Ids are asked for each batch: with the controller away every batch was refused and read again."""
    admin = Admin({"t1": "i1"}, errors={"*": AWAY})
    known = {"t1": "i1", "t2": "i2"}
    assert ask_ids(client(admin), SOURCE, ["t1", "t2"], known)() == {"t1": "i1"}
    with pytest.raises(FleetError, match="cannot be asked for"):
        ask_ids(client(admin), SOURCE, ["t1", "t3"], known)()
    admin.lists = False
    with pytest.raises(FleetError, match="cannot be asked for"):
        ask_ids(client(admin), SOURCE, ["t1"], known)()


def test_known_ids_do_not_count_where_the_question_is_refused() -> None:
    """Rights that were taken away are no controller that is away."""
    admin = Admin({"t1": "i1"}, errors={"*": DENIED})
    with pytest.raises(FleetError, match="cannot be asked for"):
        ask_ids(client(admin), SOURCE, ["t1"], {"t1": "i1"})()


def test_a_watch_keeps_topics_and_ids_while_the_controller_alone_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with librdkafka's client: it waits for the controller in vain, while other brokers list all topics."""
    monkeypatch.setattr(topic_descriptions, "TIMEOUT_S", 1.0)
    with MockCluster() as cluster:
        for number in range(3):
            cluster.create(f"t{number}", [2, 3])
        controller: Any = cluster
        controller._do("rd_kafka_mock_set_controller_id", 1)
        watch = ClusterWatch(
            Source(name="s", kafka={"bootstrap.servers": cluster.bootstrap_servers}, pattern="t.*"), 1.0, lambda: None
        )
        before = watch.look()
        assert len(before.topics) == 3
        cluster.down(1)
        assert watch.look().topics == before.topics
        assert watch.ids(["t0", "t1"])() == {name: before.ids[name] for name in ("t0", "t1")}


def test_a_cluster_is_not_away_while_one_of_its_brokers_is_silent() -> None:
    """An agent would stop reading, or give its topics to others, although two of three brokers answer."""
    with MockCluster() as cluster:
        cluster.create("t1", [2, 3])
        kafka = {"bootstrap.servers": cluster.bootstrap_servers}
        watch = ClusterWatch(Source(name="s", kafka=kafka, pattern="t.*"), 1.0, lambda: None)
        before = watch.look()
        silence_used_broker(cluster, watch._client())
        assert watch.answers()
        seen = watch.look()
        assert seen.answers
        assert seen.topics == before.topics


class Probed:
    """A watch whose broker gets requests."""

    def __init__(self, answer: Callable[[], bool]) -> None:
        self.answers = answer


def probed(*answers: Callable[[], bool]) -> list[ClusterWatch]:
    """Taken for real ones."""
    return cast("list[ClusterWatch]", [Probed(answer) for answer in answers])


def test_clusters_are_probed_together() -> None:
    """One after the other, five that were away took longer than the grace in which an isolated agent has to stop."""
    together = threading.Barrier(5, timeout=10)

    def away() -> bool:
        together.wait()
        return False

    assert not any_answers(probed(*[away] * 5))
    assert not together.broken
    assert not any_answers([])


def test_a_probe_that_hangs_hides_no_cluster_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the probes end in time where none answers."""
    released = threading.Event()
    assert any_answers(probed(released.wait, lambda: False, lambda: True))
    monkeypatch.setattr("assignors.fleet.cluster_topics._PROBES_S", 0.05)
    assert not any_answers(probed(released.wait, lambda: False))
    released.set()


@pytest.mark.parametrize("failed", ["list", "describe"])
def test_a_cluster_that_did_not_answer_is_asked_again_soon(failed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour between two looks is much for topics that seldom change, and an hour without them as well."""
    admin = Admin({"t1": "i1"}, lists=failed != "list")
    if failed == "describe":
        admin.errors = {"t1": AWAY}
    watch = ClusterWatch(SOURCE, 3600.0, lambda: None)
    monkeypatch.setattr("assignors.fleet.cluster_topics._RETRY_S", 0.01)
    monkeypatch.setattr(watch, "_client", lambda: client(admin))
    watch.start()
    try:
        wait_until(lambda: watch.seen().looked, 30)
        assert not watch.seen().topics
        admin.lists, admin.errors = True, {}
        wait_until(lambda: watch.seen().topics, 30)
    finally:
        watch.close()


def test_a_watch_that_looks_already_starts_no_second_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process starts its watches while it loads the rest of the agent, whose loop starts them, too."""
    watch = ClusterWatch(SOURCE, 3600.0, lambda: None)
    monkeypatch.setattr(watch, "_client", lambda: client(Admin({"t1": "i1"})))
    watch.start()
    try:
        wait_until(lambda: watch.seen().looked, 30)
        watch.start()
        assert [topic.name for topic in watch.seen().topics] == ["t1"]
    finally:
        watch.close()
    watch.start()
