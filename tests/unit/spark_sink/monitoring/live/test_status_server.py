"""The live page's server: its answers and refusals, and that it is read-only."""

import json
import socket
import struct
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from assignors.fleet import Standing
from spark_sink.errors import OptionError
from spark_sink.monitoring.live import LiveServer, http_server, parse_address, status_metrics

STATUS: dict[str, Any] = {
    "agent": {"id": "one", "capacity": 1.0, "zone": "az-a"},
    "standing": "member",
    "view": {"version": 3, "members": [{"id": "one", "capacity": 1.0, "zone": "az-a"}]},
    "topics": ["home/orders"],
    "owners": {"home/orders": ["one"]},
    "lanes": 1,
    "consumers": 1,
    "rows": 12,
    "bad_records": 4,
    "commits": 3,
    "committed_at": 1767225600.0,
    "rebalances": 2,
    "lag": {"home/orders": 7},
    "lag_s": {"home/orders": 1.5},
    "received": {"az-a": 100, "az-b": 300},
    "crossing": {"bytes": 300, "share": 0.75, "cost": 0.5, "cost_per_hour": 2.0},
    "quarantined": 9,
    "problems": [],
    "reads": True,
    "turns": True,
    "unready": "",
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


def connected(live: LiveServer) -> socket.socket:
    """A connection without a request."""
    host, _, port = live.url.removeprefix("http://").rstrip("/").rpartition(":")
    return socket.create_connection((host, int(port)), 5)


def get(live: LiveServer, path: str, method: str = "GET") -> tuple[int, str]:
    """Code and body of an answer."""
    request = urllib.request.Request(live.url + path, method=method)  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_quarantine_that_is_not_counted_yet_is_no_zero(live: LiveServer, status: dict[str, Any]) -> None:
    """The count takes a minute: an alert on it would take the first count for new bad records."""
    status["quarantined"] = None
    assert "azimuth_fleet_quarantined" not in get(live, "metrics")[1]


def test_page_status_metrics_and_probes_answer(live: LiveServer) -> None:
    """A living agent that reads is healthy and ready, and Prometheus finds its numbers."""
    assert get(live, "")[1].startswith("<!doctype html>")
    assert json.loads(get(live, "status.json")[1]) == STATUS
    assert get(live, "healthz") == get(live, "readyz") == (200, "ok")
    metrics = get(live, "metrics")[1]
    assert "azimuth_fleet_rows_total 12.0" in metrics
    assert 'azimuth_fleet_lag_records{topic="home/orders"} 7.0' in metrics
    assert 'azimuth_fleet_lag_seconds{topic="home/orders"} 1.5' in metrics
    assert 'azimuth_fleet_received_bytes_total{zone="az-b"} 300.0' in metrics
    assert "azimuth_fleet_cost_total 0.5" in metrics
    assert "azimuth_fleet_cross_zone_bytes_total 300.0" in metrics
    assert "azimuth_fleet_cross_zone_share 0.75" in metrics
    assert "azimuth_fleet_quarantined 9.0" in metrics
    assert "azimuth_fleet_bad_records_total 4.0" in metrics
    assert "azimuth_fleet_ready 1.0" in metrics
    assert 'azimuth_fleet_standing{standing="member"} 1.0' in metrics
    assert 'azimuth_fleet_standing{standing="isolated"} 0.0' in metrics
    assert "azimuth_fleet_commit_timestamp_seconds 1.7672256e+09" in metrics


def test_an_agent_that_may_not_read_is_alive_but_not_ready(live: LiveServer, status: dict[str, Any]) -> None:
    """A probe says why: the supervisor must not kill an agent that waits for its fleet."""
    status |= {"reads": False, "standing": "isolated", "unready": "nothing answers"}
    assert get(live, "healthz") == (200, "ok")
    assert get(live, "readyz") == (503, "nothing answers")
    status |= {"turns": False}
    assert get(live, "healthz")[0] == 503


def test_nothing_can_be_changed(live: LiveServer) -> None:
    """Other methods are refused, other paths do not exist; HEAD is GET without the body."""
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert get(live, "", method)[0] == 501
    assert get(live, "../etc/passwd")[0] == get(live, "%2e%2e/etc/passwd")[0] == 404
    assert get(live, "healthz", "HEAD") == (200, "")


def test_garbage_is_refused_and_nothing_is_said_of_it(
    live: LiveServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever reaches the port must not fill the log, nor end the server."""
    for sent in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET /" + b"a" * 70_000, b"GET / HTTP/9.9\r\n\r\n"):
        with connected(live) as one:
            one.sendall(sent + b"\r\n\r\n")
    with connected(live) as one:
        one.sendall(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n")
        assert b"431" in one.recv(100)
    for _ in range(20):  # gone before the answer has come
        with connected(live) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert get(live, "healthz") == (200, "ok")
    assert "Traceback" not in capfd.readouterr().err + caplog.text


def test_slow_clients_are_hung_up_on_and_keep_nobody_out(live: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter every now and then would hold a thread for ever, and hundreds of them the agent's memory."""
    monkeypatch.setattr(http_server, "_SLOW_S", 0.5)
    monkeypatch.setattr(http_server, "_MOST", 20)
    slow = [connected(live) for _ in range(50)]
    try:
        ended = set[int]()
        deadline = time.monotonic() + 10
        while len(ended) < len(slow):
            assert time.monotonic() < deadline, f"{len(slow) - len(ended)} still hold a thread"
            for number, one in enumerate(slow):
                try:
                    one.sendall(b"G")
                except OSError:
                    ended.add(number)
            assert get(live, "healthz") == (200, "ok")
    finally:
        for one in slow:
            one.close()


def test_a_name_that_is_no_text_is_shown_as_well_as_it_can_be(live: LiveServer, status: dict[str, Any]) -> None:
    """Environments contain bytes, and Python's text for them may not be encodable as UTF-8."""
    status |= {"unready": "agent '\udcff' waits"}
    assert get(live, "readyz") == (503, "agent '\\udcff' waits")


def test_the_page_is_served_by_ipv6_too(status: dict[str, Any]) -> None:
    """The address is written as a browser takes it."""
    try:
        server = LiveServer(("::1", 0), lambda: status)
    except OptionError as error:
        pytest.skip(str(error))
    with server as live:
        assert live.url.startswith("http://[::1]:")
        assert get(live, "healthz") == (200, "ok")


def test_without_a_host_the_page_is_local(status: dict[str, Any]) -> None:
    """Users who want it on the network must give an address."""
    assert parse_address(":8080") == ("127.0.0.1", 8080)
    assert parse_address("0.0.0.0:80") == ("0.0.0.0", 80)  # noqa: S104 - what a user may ask for
    assert parse_address("[::1]:80") == ("::1", 80)
    for text in ("8080", ":", "host", ":99999", ":x", ":\N{SUPERSCRIPT TWO}"):
        with pytest.raises(OptionError, match="need"):
            parse_address(text)
    for host in ("no.such.host.invalid", "a" * 70 + ".", ".."):
        with pytest.raises(OptionError, match="name another"):
            LiveServer((host, 0), lambda: status)
    with LiveServer(("127.0.0.1", 0), lambda: status) as first, pytest.raises(OptionError, match="name another"):
        LiveServer(("127.0.0.1", int(first.url.rsplit(":")[-1].strip("/"))), lambda: status)


def test_every_standing_has_a_metric() -> None:
    """An alert on a standing that is not exported would never fire."""
    assert {one.value for one in Standing} == set(status_metrics._STANDINGS)


def test_the_page_of_the_whole_fleet_stands_beside_that_of_the_agent() -> None:
    """Any agent serves it, without a server of its own."""
    with LiveServer(("127.0.0.1", 0), lambda: STATUS, fleet=lambda: {"figures": {"home/orders": {"lag": 7}}}) as live:
        code, page = get(live, "fleet")
        assert (code, "Topics, the furthest behind first" in page) == (200, True)
        code, value = get(live, "fleet.json")
        assert (code, json.loads(value)["figures"]["home/orders"]["lag"]) == (200, 7)
        assert 'href="fleet"' in get(live, "")[1]
