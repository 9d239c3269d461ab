"""An agent joins its fleet only when it can decide what to read."""

import threading

from assignors.fleet.topic_descriptions import Sighting
from tests.unit.assignors.fleet.model_fleet import ModelAgent, Server, readers
from tests.unit.assignors.fleet.test_agreed_workers import TOPICS
from tests.waiting import wait_until

KNOWN = Sighting(cluster="c", topics=TOPICS)


def test_an_agent_joins_after_the_first_answer_about_its_topics() -> None:
    """The others give it topics as soon as it has joined: until it knows them, they have no reader."""
    server = Server()
    old, new = ModelAgent("a", server, KNOWN), ModelAgent("b", server, Sighting())
    old.step()
    stop, turns = threading.Event(), threading.Semaphore(0)
    step = new.loop.step

    def counted() -> None:
        step()
        turns.release()

    new.loop.step = counted  # type: ignore[method-assign]  # only counted
    thread = threading.Thread(target=new.loop.run, args=(stop,))
    thread.start()
    try:
        for _ in range(2):
            assert turns.acquire(timeout=30)
        assert server.view.ids == ("a",)
        assert new.loop.status()["unready"] == "its topics are not known yet"
        new.watch.sighting = Sighting(problems=("s: no broker answers",), answers=False)
        for _ in range(2):
            assert turns.acquire(timeout=30)
        assert server.view.ids == ("a",), "no cluster has answered, so it would read nothing"
        assert new.loop.status()["unready"] == "s: no broker answers"
        new.watch.sighting = Sighting(cluster="c", problems=("s: topics cannot be described",), whole=False)
        for _ in range(2):
            assert turns.acquire(timeout=30)
        assert server.view.ids == ("a",), "the controller is away, so no topic is known"
        new.watch.sighting = KNOWN
        wait_until(lambda: server.view.ids == ("a", "b"), 30)
        wait_until(lambda: new.ingestion.lanes, 30)
        old.step()
        assert all(readers([old, new], TOPICS).values())
    finally:
        stop.set()
        thread.join(30)


def test_one_cluster_that_is_away_keeps_no_agent_from_joining() -> None:
    """It reads the topics of the others; a cluster counts as asked after its first failure."""
    server = Server()
    one = ModelAgent("a", server, KNOWN, Sighting(problems=("s1: no broker answers",), answers=False))
    one.step()
    assert server.view.ids == ("a",)
    assert all(readers([one], TOPICS).values())


def test_the_first_view_with_an_agent_has_its_workers() -> None:
    """An agent that joined without them would send all agents to their groups until its second declaration."""
    server = Server()
    one = ModelAgent("a", server, KNOWN)
    one.step()
    assert server.view.version == 1
    assert any(setting.startswith("workers.now=#") for setting in server.view.members[0].settings)
