"""A Redis whose keys of a fleet hold what another program wrote."""

import json
import shutil
from collections.abc import Callable

import pytest
import redis

from assignors.errors import FleetError
from assignors.fleet import Agent, RedisMembers, Session, Standing
from tests.redis_server import RedisServer
from tests.waiting import wait_until

INDEX = "azimuth:{f}:index"
TWICE = json.dumps({"version": 50, "members": [{"id": "q"}, {"id": "q"}]})

pytestmark = [
    pytest.mark.long,
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server"),
]


def text(client: redis.Redis) -> None:
    """A text where the agents expect a hash."""
    client.delete(INDEX)
    client.set(INDEX, "x")


def view_with_doubles(client: redis.Redis) -> None:
    """A view that Lua takes, and Python does not."""
    client.hset(INDEX, "view", TWICE)


def name_of_bytes(client: redis.Redis) -> None:
    """A name that is no UTF-8, so the client cannot read the answer."""
    agent = {"attributes": json.dumps({"id": "x"}), "beat": 1e15, "process": ""}
    client.hset(INDEX, b"agent:\xff", json.dumps(agent))


@pytest.mark.parametrize("spoil", [text, view_with_doubles, name_of_bytes], ids=lambda one: one.__name__)
def test_what_another_program_wrote_is_reported_until_it_is_gone(
    redis_server: RedisServer, spoil: Callable[[redis.Redis], None]
) -> None:
    """The thread that asks must not end: the agent would keep its last view as a normal member, although others die."""
    url = f"redis://127.0.0.1:{redis_server.port}/0"
    one = RedisMembers(Agent("a"), url, "f", Session(session_s=3), witness=lambda: True).start()
    with redis.Redis(port=redis_server.port) as client:
        wait_until(lambda: one.state().standing is Standing.MEMBER, 20, "a view")
        spoil(client)
        wait_until(lambda: one.state().standing is Standing.UNREACHABLE, 20, "a report")
        assert f"does not keep the fleet's view, in key {INDEX}" in one.state().reason
        assert one.state().reads
        with pytest.raises(FleetError, match="does not keep the fleet's view"):
            one.observe()
        client.delete(INDEX)
        wait_until(lambda: one.state().standing is Standing.MEMBER, 20, "a view again")
    one.close()
