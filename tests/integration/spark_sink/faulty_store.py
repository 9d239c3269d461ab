"""A proxy before an object store that answers some requests wrongly.

It is a process of its own, because delta-rs waits with Python's lock. Arguments: port, address of the store.
`POST /-/faults` sets the faults as JSON, such as `[{"how": 503, "after": true, "method": "PUT", "path": "_delta_log"}]`
with a regular expression of the path, and `GET /-/faults` returns how often each is still to come. An object such as
`{"share": 0.1, "seed": 1, "late_s": 3}` among them is a storm: this share of all other requests gets a wrong answer.
"""

import json
import random
import re
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.spark_sink.faulty_proxy import (
    CLOSED,
    CUT,
    DOCUMENT,
    EMPTY,
    INTERNAL,
    LATE,
    RESET,
    SLOW_DOWN,
    STALE,
    Fault,
    FaultyProxy,
    Handler,
)
from tests.integration.spark_sink.small_servers import answering, server

_CONTROL = "/-/faults"
_KINDS = {SLOW_DOWN: 4.0, CUT: 2.0, CLOSED: 2.0, LATE: 1.0}
_ACTED, _REFUSED = {CUT, EMPTY, STALE}, {SLOW_DOWN, INTERNAL, RESET}


class _Storm:
    """Draws wrong answers for a share of the requests, as an overloaded store gives them.

    Args:
        share: of the requests.
        seed: of the draws.
        late_s: how late a late answer is, in seconds; longer than the client waits.
        kinds: weight of each kind of wrong answer.
    """

    def __init__(self, *, share: float, seed: int, late_s: float, kinds: Mapping[str, float] = _KINDS) -> None:
        self._share, self._late_s, self._kinds = share, late_s, kinds
        self._draw = random.Random(seed)

    def fault(self, method: str, path: str) -> Fault | None:
        """Return the fault of one request; None for a right answer."""
        if self._draw.random() >= self._share:
            return None
        possible = {one: weight for one, weight in self._kinds.items() if _fits(one, method, path)}
        if not possible:
            return None
        [how] = self._draw.choices(list(possible), list(possible.values()))
        # A store that begins an answer has acted, and one that refuses has not. Half an answer to HEAD has no length.
        after = how in _ACTED or (how not in _REFUSED and self._draw.random() < 0.5)
        return Fault(how=how, after=after, hits=lambda *_: True, late_s=self._late_s)


def _fits(how: str, method: str, path: str) -> bool:
    """Return whether a store can answer such a request so."""
    if how in {EMPTY, STALE}:
        return method == "GET" and "list-type=2" in path
    if how == DOCUMENT:
        return method == "POST" and "uploadId" in path
    return how != RESET or method == "PUT"


class _Proxy(FaultyProxy):
    storm: _Storm | None = None

    def fault_of(self, method: str, path: str) -> Fault | None:
        found = super().fault_of(method, path)
        return self.storm.fault(method, path) if found is None and self.storm is not None else found


class _Controlled(Handler):
    server: _Proxy

    def _answer(self) -> None:
        if self.path != _CONTROL:
            super()._answer()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if body:
            given = json.loads(body)
            self.server.faults = [_fault(**one) for one in given if "share" not in one]
            self.server.storm = next((_Storm(**one) for one in given if "share" in one), None)
        self._send(200, json.dumps([one.times for one in self.server.faults]).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815 -- names of http.server


def _fault(how: int | str, *, after: bool, method: str, path: str, times: int = 1) -> Fault:
    wanted = re.compile(path)
    return Fault(how=how, after=after, hits=lambda one, at: one == method and bool(wanted.search(at)), times=times)


@dataclass(frozen=True, slots=True)
class FaultyStore:
    """The proxy, from another process.

    Attributes:
        address: of the proxy.
    """

    address: str

    def set(self, *faults: dict[str, Any]) -> None:
        """Set the faults, in place of earlier ones."""
        self._ask(json.dumps(faults).encode())

    def left(self) -> list[int]:
        """Return how often each fault is still to come."""
        found: list[int] = json.loads(self._ask(None))
        return found

    def _ask(self, body: bytes | None) -> bytes:
        with urllib.request.urlopen(f"{self.address}{_CONTROL}", body, timeout=30) as answer:  # noqa: S310 -- ours
            text: bytes = answer.read()
        return text


@contextmanager
def faulty_store(target: str, log: Path) -> Iterator[FaultyStore]:
    """Run a proxy before a store."""
    command = [sys.executable, "-m", "tests.integration.spark_sink.faulty_store"]
    with server(lambda port: [*command, str(port), target], log, answering(_CONTROL)) as address:
        yield FaultyStore(address)


if __name__ == "__main__":
    _Proxy(sys.argv[2], int(sys.argv[1]), _Controlled).serve_forever()
