"""Servers and folders with faults, for the tests of `--check`."""

import contextlib
import json
import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from deltalake import write_deltalake

from producer.testing import MockCluster
from spark_sink.cli import main
from tests.unit.spark_sink.checks.wrong_servers import (
    empty_registry,
    refuse_database_password,
    refuse_password,
    serving,
    strange_certificate,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The servers and folders of the tests.

    Attributes:
        servers: brokers that are well; `refused` is the only topic that they refuse.
        password: a broker that accepts no password.
        certificate: a broker whose certificate no authority has signed.
        registry: a registry without subjects.
        database: a PostgreSQL that accepts no password.
        port: a port that another process serves.
        tmp: a folder; in it, the tables `strange` and `typed`, the file `file`, and `checkpoint`, which is of another
            table.
    """

    servers: str
    password: str
    certificate: str
    registry: str
    database: str
    port: str
    tmp: Path

    @property
    def names(self) -> dict[str, str]:
        """The places as values for the texts of a table of faults."""
        return {name: str(getattr(self, name)) for name in self.__slots__}


def listener() -> socket.socket:
    """A socket that listens on a port of its own."""
    return socket.create_server(("127.0.0.1", 0))


@contextlib.contextmanager
def opened(tmp: Path) -> Iterator[Places]:
    """Start all servers, and fill the folder."""
    with contextlib.ExitStack() as stack:
        mock = stack.enter_context(MockCluster(["az-a"]))
        mock.create("flights", [1])
        mock.create("refused", [1])
        mock.refuse("refused", KafkaError.TOPIC_AUTHORIZATION_FAILED)
        places = Places(
            servers=mock.bootstrap_servers,
            password=stack.enter_context(serving(refuse_password)),
            certificate=stack.enter_context(serving(strange_certificate(tmp))),
            registry=stack.enter_context(empty_registry()),
            database=stack.enter_context(serving(refuse_database_password)),
            port=str(stack.enter_context(listener()).getsockname()[1]),
            tmp=tmp,
        )
        write_deltalake(str(tmp / "strange"), pa.table({"name": ["x"]}))
        write_deltalake(str(tmp / "typed"), pa.table({"topic": ["x"], "partition": ["0"], "offset": [0]}))
        (tmp / "file").touch()
        (tmp / "checkpoint").mkdir()
        (tmp / "checkpoint" / "azimuth-table.json").write_text(json.dumps({"table": "/elsewhere"}))
        (tmp / "mistyped.toml").write_text('tabel = "x"\n')
        with contextlib.closing(sqlite3.connect(tmp / "claims.db")) as made:
            made.execute("CREATE TABLE strange (name TEXT)")
        yield places


def expect_one_sentence(
    places: Places, arguments: list[str], place: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a command, and expect one sentence that names the place and the way out, and no password."""
    names = places.names
    with pytest.raises(SystemExit) as ended:
        main([one.format(**names) for one in arguments])
    said = capsys.readouterr()
    found = [line for line in said.out.splitlines() if line.startswith("fault")]
    sentence = " ".join((found[0] if found else said.err).replace("│", " ").split())
    assert ended.value.code == 2
    assert len(found) + bool(said.err) == 1, said
    assert place.format(**names) in sentence
    assert way.format(**names) in sentence
    assert "canary" not in said.out + said.err
