"""The live page's server: what it answers, what it refuses, and that nothing on it can be changed."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from spark_sink._errors import OptionError
from spark_sink.live import LiveServer, parse_address

STATUS: dict[str, Any] = {
    "agent": {"id": "one", "capacity": 1.0, "zone": "az-a"},
    "standing": "member",
    "view": {"version": 3, "members": [{"id": "one", "capacity": 1.0, "zone": "az-a"}]},
    "topics": ["home/orders"],
    "owners": {"home/orders": ["one"]},
    "lanes": 1,
    "consumers": 1,
    "rows": 12,
    "commits": 3,
    "rebalances": 2,
    "lag": {"home/orders": 7},
    "problems": [],
    "reads": True,
    "turns": True,
    "at": 0.0,
}


@pytest.fixture
def status() -> dict[str, Any]:
    """The status that the server is given; tests change it."""
    return dict(STATUS)


@pytest.fixture
def live(status: dict[str, Any]) -> Iterator[LiveServer]:
    """A server on a free port."""
    with LiveServer(("127.0.0.1", 0), lambda: status) as server:
        yield server


def get(live: LiveServer, path: str, method: str = "GET") -> tuple[int, str]:
    """Code and body of an answer."""
    request = urllib.request.Request(live.url + path, method=method)  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - as above
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_page_status_metrics_and_probes_answer(live: LiveServer) -> None:
    """A living agent that reads is healthy and ready, and Prometheus finds its numbers."""
    assert get(live, "")[1].startswith("<!doctype html>")
    assert json.loads(get(live, "status.json")[1]) == STATUS
    assert get(live, "healthz") == get(live, "readyz") == (200, "ok")
    metrics = get(live, "metrics")[1]
    assert "azimuth_fleet_rows_total 12.0" in metrics
    assert 'azimuth_fleet_lag_records{topic="home/orders"} 7.0' in metrics


def test_an_agent_that_may_not_read_is_alive_but_not_ready(live: LiveServer, status: dict[str, Any]) -> None:
    """A probe says why: the supervisor must not kill an agent that waits for its fleet."""
    status |= {"reads": False, "standing": "isolated", "problems": ["nothing answers"]}
    assert get(live, "healthz") == (200, "ok")
    assert get(live, "readyz") == (503, "nothing answers")
    status |= {"turns": False}
    assert get(live, "healthz")[0] == 503


def test_nothing_can_be_changed(live: LiveServer) -> None:
    """Other methods are refused, other paths are not there."""
    assert get(live, "", "POST")[0] == 501
    assert get(live, "../etc/passwd")[0] == 404


def test_without_a_host_the_page_is_local(status: dict[str, Any]) -> None:
    """Who wants it on the network says so."""
    assert parse_address(":8080") == ("127.0.0.1", 8080)
    assert parse_address("0.0.0.0:80") == ("0.0.0.0", 80)  # noqa: S104 - what a user may ask for
    assert parse_address("[::1]:80") == ("::1", 80)
    for text in ("8080", ":", "host", ":99999", ":x"):
        with pytest.raises(OptionError, match="need"):
            parse_address(text)
    with LiveServer(("127.0.0.1", 0), lambda: status) as first, pytest.raises(OptionError, match="name another"):
        LiveServer(("127.0.0.1", int(first.url.rsplit(":")[-1].strip("/"))), lambda: status)
