"""Why brokers do not answer."""

import socket
import threading
from collections.abc import Iterator

import pytest

from assignors.clients import unreachable_causes
from assignors.clients.unreachable_causes import why_unreachable
from assignors.fleet import ClusterWatch, Source, topic_descriptions

pytestmark = pytest.mark.long


@pytest.fixture
def hangs_up() -> Iterator[str]:
    """A server that ends each connection at the first word, as brokers do where one speaks plain text to TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                with one:
                    one.recv(100)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.mark.parametrize(
    ("protocol", "told"), [("PLAINTEXT", "security.protocol=PLAINTEXT"), ("SSL", "Disconnected")], ids=["plain", "tls"]
)
def test_a_wrong_protocol_is_told_from_silence(
    hangs_up: str, protocol: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request for topics reports only a timeout, which does not point to the protocol."""
    monkeypatch.setattr(unreachable_causes, "_ASK_S", 1.0)
    monkeypatch.setattr(topic_descriptions, "TIMEOUT_S", 0.3)
    kafka = {"bootstrap.servers": hangs_up, "security.protocol": protocol}
    assert told in why_unreachable(kafka)
    watch = ClusterWatch(Source(name="home", kafka=kafka, pattern="x"), 1.0, lambda: None)
    (problem,) = watch.look().problems
    assert f"no broker of {hangs_up} answers (" in problem
    assert told in problem
    assert watch.look().problems == (problem,), "the same problem is the same sentence, or each look would be logged"
    assert not watch.seen().answers
    watch.close()


def test_a_property_that_has_no_meaning_is_named() -> None:
    """It is not raised, because the caller is already reporting another error."""
    assert "no.such" in why_unreachable({"bootstrap.servers": "127.0.0.1:1", "no.such": "1"})
