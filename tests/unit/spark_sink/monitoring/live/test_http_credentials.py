"""A token and TLS of the pages: what is refused, and what probes still get."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from spark_sink.errors import OptionError
from spark_sink.monitoring.live import Access, LiveServer
from tests.certificates import write_certificate
from tests.unit.spark_sink.monitoring.live.test_status_server import STATUS

pytestmark = pytest.mark.long

TOKEN = "a token: of two words"  # noqa: S105 -- of this test


def basic(password: str) -> str:
    """The header of a browser."""
    return "Basic " + base64.b64encode(f"any:{password}".encode()).decode()


def ask(live: LiveServer, path: str, authorization: str = "", tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Code and body of an answer."""
    headers = {"Authorization": authorization} if authorization else {}
    request = urllib.request.Request(live.url + path, headers=headers)  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request, timeout=5, context=tls) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A PEM file with a certificate for 127.0.0.1 and its key."""
    return write_certificate(tmp_path / "server.pem")


@pytest.mark.parametrize("path", ["", "status.json", "metrics", "nothing"])
@pytest.mark.parametrize(
    ("authorization", "allowed"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN}", True),
        (basic(TOKEN), True),
        ("", False),
        ("Bearer", False),
        ("Bearer other", False),
        (f"Token {TOKEN}", False),
        (TOKEN, False),
        (basic("other"), False),
        ("Basic %%%", False),
        ("Basic " + base64.b64encode(b"\xff").decode(), False),
    ],
)
def test_only_requests_with_the_token_are_answered(*, path: str, authorization: str, allowed: bool) -> None:
    """Whether a page exists is not said either."""
    with LiveServer(("127.0.0.1", 0), lambda: STATUS, Access(token=TOKEN)) as live:
        code, body = ask(live, path, authorization)
    expected = 404 if path == "nothing" else 200
    assert code == (expected if allowed else 401)
    assert allowed or body == "a token is needed"


def test_probes_need_no_token_but_give_no_reason_without_it() -> None:
    """A kubelet sends none, and a reason names topics and brokers."""
    status: dict[str, Any] = {**STATUS, "unready": "orders refuses"}
    with LiveServer(("127.0.0.1", 0), lambda: status, Access(token=TOKEN)) as live:
        assert ask(live, "healthz") == (200, "ok")
        assert ask(live, "readyz") == (503, "not ok")
        assert ask(live, "readyz", f"Bearer {TOKEN}") == (503, "orders refuses")


def test_the_page_is_served_by_tls(certificate: Path, tmp_path: Path) -> None:
    """By the given certificate, and a client that speaks plain HTTP disturbs nothing."""
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    access = Access.load(token, certificate)
    with LiveServer(("127.0.0.1", 0), lambda: STATUS, access) as live:
        assert live.url.startswith("https://")
        with pytest.raises(OSError, match=r".*"):
            urllib.request.urlopen(live.url.replace("https", "http"), timeout=5)  # noqa: S310 - our own server
        trusting = ssl.create_default_context(cafile=str(certificate))
        code, body = ask(live, "status.json", f"Bearer {TOKEN}", trusting)
        assert (code, json.loads(body)) == (200, STATUS)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            ask(live, "status.json", "", ssl.create_default_context())


@pytest.mark.parametrize(
    ("token", "certificate", "key", "says"),
    [
        ("missing", None, None, "--http-token .*missing: cannot be read"),
        ("empty", None, None, "--http-token .*empty: is empty"),
        (None, "missing", None, "--http-certificate .*missing: .*No such file"),
        (None, "empty", None, "--http-certificate .*empty: no certificate"),
        (None, None, "empty", "--http-key: needs --http-certificate"),
    ],
)
def test_a_file_that_does_not_serve_is_said(
    token: str | None, certificate: str | None, key: str | None, says: str, tmp_path: Path
) -> None:
    """Before the agent starts, with the option and the file."""
    (tmp_path / "empty").write_text("\n")
    files = [None if name is None else tmp_path / name for name in (token, certificate, key)]
    with pytest.raises(OptionError, match=says):
        Access.load(*files)


def test_the_token_is_in_no_text_of_the_access() -> None:
    """It would come into a log with the next traceback."""
    assert TOKEN not in repr(Access(token=TOKEN))
