"""Hooks by address: the log, a webhook; Redis is tested on a server."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from structlog.testing import capture_logs

from assignors.errors import ScalingFileError
from assignors.scaling import alerts
from assignors.scaling.alerts import Alert, Outbox, alert_hooks

MESSAGE = {"kind": "hot", "topic": "flights", "group": "ingest", "text": "flights: 1 of 8 partitions (3) bring more"}


def tell(alerts: Sequence[Alert], *messages: Mapping[str, Any]) -> None:
    """Give hooks messages, and wait until they have taken them."""
    outbox = Outbox(alerts)
    for message in messages:
        outbox.tell(message)
    outbox.close()


class Webhook(BaseHTTPRequestHandler):
    """Stores posted messages; refuses them below /broken."""

    posted: list[tuple[str, str, dict[str, Any]]]

    def do_POST(self) -> None:
        """Take one alert."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posted.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.send_response(500 if self.path == "/broken" else 204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's
        """Say nothing."""


@pytest.fixture
def webhook() -> Iterator[str]:
    """The address of a server that takes alerts."""
    Webhook.posted = []
    server = HTTPServer(("127.0.0.1", 0), Webhook)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_posted_the_alert_as_json(webhook: str) -> None:
    """Whole, to the path that was named."""
    tell(alert_hooks([f"{webhook}/alerts"]), MESSAGE)
    assert Webhook.posted == [("/alerts", "application/json", MESSAGE)]


def test_a_webhook_that_refuses_or_is_away_is_logged_and_the_next_is_told(webhook: str) -> None:
    """One warning each; no decision waits or fails for it."""
    with capture_logs() as said:
        tell(alert_hooks([f"{webhook}/broken", "http://127.0.0.1:1/away", f"{webhook}/next"]), MESSAGE)
    assert sorted(path for path, _, _ in Webhook.posted) == ["/broken", "/next"]  # each from a thread of its own
    assert [line["event"] for line in said] == ["an alert was not delivered"] * 2


def test_the_log_is_a_hook() -> None:
    """The sentence is the event, with its subject in separate fields. It is logged immediately, before later events."""
    outbox = Outbox(alert_hooks(["log"]))
    with capture_logs() as said:
        outbox.tell(MESSAGE)
    assert said == [{"event": MESSAGE["text"], "kind": "hot", "topic": "flights", "log_level": "warning"}]


@pytest.mark.parametrize("address", ["mail", "ftp://host/x", "redis://host:6379/0", ""])
def test_an_address_of_no_known_kind_is_named(address: str) -> None:
    """Also a Redis server without a channel."""
    with pytest.raises(ScalingFileError, match="channel=name"):
        alert_hooks([address])


@pytest.mark.parametrize(
    "address",
    ["rediss://:canary@host/0", "https//u:canary@host", "htps://host/services/canary", "http://[/canary"],
)
def test_of_an_address_that_is_refused_no_secret_is_told(address: str) -> None:
    """A password, or the path of a webhook, which is all that protects it."""
    with pytest.raises(ScalingFileError) as raised:
        alert_hooks([address])
    assert "canary" not in str(raised.value)


def test_a_hook_gets_messages_in_their_order_each_once() -> None:
    """Also those that wait when the outbox is closed; another hook's failures are none of its matter."""
    told, messages = list[Mapping[str, Any]](), [{**MESSAGE, "text": str(n)} for n in range(100)]

    def broken(_: Mapping[str, Any]) -> None:
        raise OSError("down")

    with capture_logs() as said:
        tell([broken, told.append], *messages)
    assert told == messages
    assert [(line["event"], line["text"]) for line in said] == [
        ("an alert was not delivered", str(n)) for n in range(100)
    ]


def test_what_a_hook_does_not_keep_up_with_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said when it begins and ends, not for each; and closing does not wait for a hook that hangs for ever."""
    monkeypatch.setattr(alerts, "_MOST", 3)
    monkeypatch.setattr(alerts, "_CLOSE_S", 0.05)
    entered, step, told = threading.Semaphore(0), threading.Semaphore(0), list[str]()

    def slow(message: Mapping[str, Any]) -> None:
        entered.release()
        step.acquire()
        told.append(message["text"])

    outbox = Outbox([slow])
    with capture_logs() as said:
        outbox.tell({"text": "0"})
        entered.acquire()
        for n in range(1, 10):  # one is with the hook, three wait
            outbox.tell({"text": str(n)})
        step.release()
        entered.acquire()
        outbox.tell({"text": "10"})
        outbox.close()
    step.release(9)
    assert told[0] == "0"
    assert [(line["event"].split(":")[0], line.get("dropped"), line.get("alerts")) for line in said] == [
        ("alerts are dropped", None, None),
        ("alerts were dropped", 6, None),
        ("alerts were not delivered", None, 4),
    ]


def test_a_channel_behind_several_sentinels_may_have_hosts_in_brackets() -> None:
    """Newer versions of Python refuse such an address as that of one host."""
    assert len(alert_hooks(["redis+sentinel://a:1,[::1]:3/s/0?channel=c"])) == 1
