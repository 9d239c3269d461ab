"""What holds while the membership's server is away."""

from assignors.fleet.topic_descriptions import Sighting
from tests.unit.assignors.fleet.model_fleet import ModelAgent, Server, readers
from tests.unit.assignors.fleet.test_agreed_workers import NUMBERS, TOPICS

KNOWN = Sighting(cluster="c", topics=TOPICS)


def test_the_shares_of_an_agent_that_dies_wait_until_the_server_is_back_and_no_other_share_moves() -> None:
    """With seats no group notices the death: docs/failure-modes.md says so, and names the setting that differs."""
    server = Server()
    agents = [ModelAgent(name, server, KNOWN, workers=NUMBERS[1]) for name in "abc"]
    for one in agents * 2:
        one.step()
    before = readers(agents, TOPICS)
    dead, left = agents[0], agents[1:]
    for one in left:
        one.members.away()
        one.workers = NUMBERS[2]
        one.step(hears=False)
    assert readers(left, TOPICS) == {key: [who for who in mine if who != "a"] for key, mine in before.items()}
    assert all("the server does not answer" in one.loop.status()["problems"] for one in left)
    server.remove(dead.name)
    for one in left * 2:
        one.step()
    assert [len(who) for who in readers(left, TOPICS).values()] == [1] * 48
