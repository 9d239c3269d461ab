"""Sources of the own zone; cloud metadata services are small servers here, asked only because the test asks."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch

import pytest

from producer import AZAwarePartitioner, ZoneDetectionError
from producer.zones import AzureZone, Ec2Zone, EnvironmentZone, GceZone, LabelFileZone, ZoneSource, detect_zone

ANSWERS = {
    ("PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60"): "secret",
    ("GET", "/latest/meta-data/placement/availability-zone-id", "X-aws-ec2-metadata-token", "secret"): "euw1-az1",
    ("GET", "/latest/meta-data/placement/availability-zone", "X-aws-ec2-metadata-token", "secret"): "eu-west-1a",
    ("GET", "/computeMetadata/v1/instance/zone", "Metadata-Flavor", "Google"): "projects/1/zones/europe-west1-b",
    ("GET", "/metadata/instance/compute/location", "Metadata", "true"): "westeurope",
    ("GET", "/metadata/instance/compute/zone", "Metadata", "true"): "2",
}


class Metadata(BaseHTTPRequestHandler):
    """Answers as the services do, and only to the headers they ask for."""

    def answer(self) -> None:
        """Look the request up."""
        path = self.path.split("?")[0]
        for (method, where, header, value), text in ANSWERS.items():
            if (method, where, value) == (self.command, path, self.headers.get(header)):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text.encode())
                return
        self.send_error(401)

    do_GET = do_PUT = answer  # noqa: N815 - the names http.server looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Serve metadata on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Metadata) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_each_cloud_is_asked_in_its_own_way(url: str) -> None:
    """Token first on EC2, a header on the others; an id or a name as wanted."""
    assert Ec2Zone(url=url).zone() == "euw1-az1"
    assert Ec2Zone(url=url, by_id=False).zone() == "eu-west-1a"
    assert GceZone(url=url).zone() == "europe-west1-b"
    assert AzureZone(url=url).zone() == "westeurope-2"


def test_the_first_source_that_knows_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The order is the caller's."""
    labels = tmp_path / "labels"
    labels.write_text('app="x"\ntopology.kubernetes.io/zone="az-b"\n')
    monkeypatch.setenv("OWN_ZONE", "az-a")
    monkeypatch.delenv("NOT_SET", raising=False)
    assert detect_zone([EnvironmentZone("NOT_SET"), LabelFileZone(labels), EnvironmentZone("OWN_ZONE")]) == "az-b"


def test_when_nobody_knows_the_error_says_who_was_asked(url: str, tmp_path: Path) -> None:
    """Every refusal with its place, and the way out."""
    (tmp_path / "labels").write_text("")
    sources: list[ZoneSource] = [
        EnvironmentZone("NOT_SET_ANYWHERE"),
        LabelFileZone(tmp_path / "missing"),
        LabelFileZone(tmp_path / "labels"),
        GceZone(url=f"{url}/elsewhere"),
    ]
    with pytest.raises(ZoneDetectionError, match="NOT_SET_ANYWHERE") as caught:
        detect_zone(sources)
    for place in ("missing", "has no label", "401", "set client.rack"):
        assert place in str(caught.value)


def test_an_answer_that_is_none_is_a_refusal_and_the_next_source_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Something else listens there and speaks no HTTP; a file of labels holds no text."""
    monkeypatch.setenv("OWN_ZONE", "az-a")
    labels = tmp_path / "labels"
    labels.write_bytes(b"\xff\xfe")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1024)
                peer.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        other = GceZone(url=f"http://127.0.0.1:{server.getsockname()[1]}")
        assert detect_zone([LabelFileZone(labels), other, EnvironmentZone("OWN_ZONE")]) == "az-a"
        thread.join()


def test_nothing_is_asked_unless_the_caller_asks() -> None:
    """No environment, no network when a producer is made without a zone."""
    with patch("urllib.request.OpenerDirector.open") as opened:
        AZAwarePartitioner()
    opened.assert_not_called()
