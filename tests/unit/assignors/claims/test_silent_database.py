"""The watch of a connection: it ends a silent one, and no other."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine

from assignors.claims.silent_database import _Watch, end_silent_connections
from tests.waiting import wait_until

ANSWER_S = 0.2


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The program's end of a connection, and the server's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(20)
        yield ours, theirs


def watches() -> int:
    """Count the threads that wait."""
    return sum(one.name == "database-silence" for one in threading.enumerate())


def test_a_silent_connection_ends(ends: tuple[socket.socket, socket.socket]) -> None:
    """The call that waits for an answer gets the end of the connection."""
    watch = _Watch(ends[0].fileno(), ANSWER_S)
    begun = time.monotonic()
    assert ends[0].recv(1) == b""
    assert time.monotonic() - begun >= ANSWER_S / 2
    watch.end()


def test_each_statement_has_the_full_time(ends: tuple[socket.socket, socket.socket]) -> None:
    """A transaction of many statements may take longer than the answer to one."""
    watch = _Watch(ends[0].fileno(), ANSWER_S)
    until = time.monotonic() + 3 * ANSWER_S
    while time.monotonic() < until:
        watch.begin_again()
        time.sleep(ANSWER_S / 20)
    ends[1].send(b"x")
    assert ends[0].recv(1) == b"x"
    watch.end()


def test_a_connection_that_is_returned_is_not_watched(ends: tuple[socket.socket, socket.socket]) -> None:
    """It stays open in the pool, also if the server has closed it meanwhile."""
    for _ in range(3):
        _Watch(ends[0].fileno(), ANSWER_S).end()
    wait_until(lambda: watches() == 0, 20)
    ends[1].send(b"x")
    assert ends[0].recv(1) == b"x"


def test_a_connection_that_has_ended_by_itself_is_no_fault(ends: tuple[socket.socket, socket.socket]) -> None:
    """The watch may fire at that moment."""
    watch = _Watch(ends[0].fileno(), ANSWER_S)
    ends[0].shutdown(socket.SHUT_RDWR)
    ends[1].close()
    wait_until(lambda: watches() == 0, 20)
    watch.end()


@pytest.mark.parametrize(
    ("address", "limits"),
    [
        ("postgresql+psycopg://h/d", {"connect_timeout": 10}),
        ("postgresql+psycopg://h/d?connect_timeout=3", {"connect_timeout": "3"}),
        ("mysql+pymysql://h/d", {"connect_timeout": 10, "read_timeout": 7, "write_timeout": 7}),
        ("mysql+pymysql://h/d?read_timeout=2", {"connect_timeout": 10, "read_timeout": 2, "write_timeout": 7}),
        ("sqlite://", {}),
    ],
)
def test_limits_of_the_address_are_kept(address: str, limits: dict[str, object]) -> None:
    """Others are set in the words of the driver; SQLite's would be refused."""
    engine = create_engine(address)
    end_silent_connections(engine, 7.0)
    _, named = engine.dialect.create_connect_args(engine.url)
    for listener in engine.dialect.dispatch.do_connect:
        listener(engine.dialect, None, [], named)
    assert {name: value for name, value in named.items() if name.endswith("_timeout")} == limits
