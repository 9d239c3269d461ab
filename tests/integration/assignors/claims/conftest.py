"""Databases for the tests of claims: a file, and private servers on free ports that end with the tests."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from assignors.claims import Form, PartitionClaims
from spark_sink.demo.cluster.ports import choose_ports

WAYS = {
    "sqlite": ("sqlite", Form.LOCKING),
    "sqlite-optimistic": ("sqlite", Form.OPTIMISTIC),
    "postgresql": ("postgresql", Form.LOCKING),
    "postgresql-two-steps": ("postgresql", Form.TWO_STEPS),
    "postgresql-optimistic": ("postgresql", Form.OPTIMISTIC),
    "mariadb": ("mariadb", Form.LOCKING),
    "mariadb-two-steps": ("mariadb", Form.TWO_STEPS),
    "mariadb-optimistic": ("mariadb", Form.OPTIMISTIC),
}


class DatabaseServer(Protocol):
    """A database with an address; `kill` and `start` are what a server can suffer."""

    @property
    def address(self) -> str:
        """SQLAlchemy's."""

    def start(self) -> None:
        """Start it, and wait until it answers."""

    def kill(self) -> None:
        """SIGKILL."""

    def close(self) -> None:
        """End it and remove its data."""


class SQLiteFile:
    """A file; no server, so nothing to kill."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="claims-sqlite-"))
        self.address = f"sqlite:///{self._folder}/claims.db"

    def start(self) -> None:
        """Nothing."""

    def kill(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self._folder)


class Server:
    """A server process of our own, run by a user that is not root, in a folder of its own."""

    user: str

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self.port = choose_ports(1)[0]
        self.folder = Path(tempfile.mkdtemp(prefix=f"claims-{self.user}-"))
        self._process: subprocess.Popen[bytes] | None = None
        if os.getuid() == 0:
            shutil.chown(self.folder, self.user)
        self.initialise()
        self.start()

    def initialise(self) -> None:
        """Make the data."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """What runs."""
        raise NotImplementedError

    def run(self, *command: str) -> None:
        """Run something to its end, as the server's user."""
        done = subprocess.run(command, capture_output=True, cwd=self.folder, check=False, **self._as_user())
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "server.log").open("ab") as log:
            # Tied to this process: the server dies when the tests are killed.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.command()],  # noqa: S607 -- as found in PATH
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._as_user(),
            )
        deadline = time.monotonic() + 60
        while not self.answers():
            assert self._process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the server did not come up"
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether it takes connections."""
        raise NotImplementedError

    def kill(self) -> None:
        """SIGKILL to it and all its children."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """SIGSTOP to it and all its children: the kernel takes connections, and no answer comes."""
        assert self._process is not None
        first = psutil.Process(self._process.pid)
        processes = [first, *first.children(recursive=True)]
        for one in processes:
            one.suspend()
        try:
            yield
        finally:
            for one in processes:
                one.resume()

    def close(self) -> None:
        """End it and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _as_user(self) -> dict[str, Any]:
        if os.getuid() != 0:
            return {}
        user = pwd.getpwnam(self.user)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class PostgreSQL(Server):
    """PostgreSQL as Debian has it."""

    user = "postgres"
    package = "postgresql"

    @property
    def address(self) -> str:
        """SQLAlchemy's."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def initialise(self) -> None:
        """Make the data."""
        self.run(str(self.binaries / "initdb"), "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust", "-N")

    def command(self) -> list[str]:
        """What runs."""
        places = ["-D", str(self.folder / "data"), "-k", str(self.folder), "-p", str(self.port)]
        return [str(self.binaries / "postgres"), *places, "-c", "listen_addresses=127.0.0.1"]

    def answers(self) -> bool:
        """Whether it takes connections."""
        asked = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0

    @classmethod
    def found(cls) -> Path | None:
        """Where its binaries are."""
        places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        near = shutil.which("initdb")
        return places[-1].parent if places else Path(near).parent if near else None


class MariaDB(Server):
    """MariaDB as Debian has it."""

    user = "mysql"
    package = "mariadb-server"

    @property
    def address(self) -> str:
        """SQLAlchemy's."""
        return f"mariadb://claims:claims@127.0.0.1:{self.port}/claims"

    def initialise(self) -> None:
        """Make the data."""
        made = ["--auth-root-authentication-method=normal", "--skip-test-db", f"--datadir={self.folder}/data"]
        self.run(str(self.binaries / "mariadb-install-db"), "--no-defaults", *made)
        (self.folder / "init.sql").write_text(
            "CREATE DATABASE IF NOT EXISTS claims;\n"
            "CREATE USER IF NOT EXISTS claims@'127.0.0.1' IDENTIFIED BY 'claims';\n"
            "GRANT ALL ON claims.* TO claims@'127.0.0.1';\n"
        )

    def command(self) -> list[str]:
        """What runs."""
        server = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        places = [f"--datadir={self.folder}/data", f"--socket={self.folder}/socket", f"--port={self.port}"]
        return [
            server,
            "--no-defaults",
            *places,
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            f"--init-file={self.folder}/init.sql",
        ]

    def answers(self) -> bool:
        """Whether it takes connections."""
        engine = create_engine(self.address.replace("mariadb://", "mariadb+pymysql://"))
        try:
            engine.connect().close()
        except OperationalError:
            return False
        finally:
            engine.dispose()
        return True

    @classmethod
    def found(cls) -> Path | None:
        """Where its binaries are."""
        near = shutil.which("mariadb-install-db")
        return Path(near).parent if near else None


@contextmanager
def running(kind: type[PostgreSQL | MariaDB]) -> Iterator[PostgreSQL | MariaDB]:
    """Run a server of one test's own; skip the test where it is not installed."""
    binaries = kind.found()
    if binaries is None:
        pytest.skip(f"there is no {kind.__name__} here: apt install {kind.package}")
    server = kind(binaries)
    try:
        yield server
    finally:
        server.close()


_running: dict[str, DatabaseServer] = {}


def database(kind: str) -> DatabaseServer:
    """One database of each kind for a run; skips where it is not installed."""
    if kind not in _running:
        if kind == "sqlite":
            _running[kind] = SQLiteFile()
        else:
            server: type[PostgreSQL | MariaDB] = PostgreSQL if kind == "postgresql" else MariaDB
            binaries = server.found()
            if binaries is None:
                pytest.skip(f"there is no {kind} here: apt install {server.package}")
            _running[kind] = server(binaries)
    return _running[kind]


@pytest.fixture(scope="session", autouse=True)
def databases() -> Iterator[None]:
    """End all databases with the run."""
    yield
    while _running:
        _running.popitem()[1].close()


class Way:
    """A database and a form of claiming, with a table that is this test's own."""

    def __init__(self, kind: str, form: Form) -> None:
        self.kind = kind
        self.form = form
        self.server = database(kind)
        self.table = f"claims_{uuid.uuid4().hex[:8]}"
        self._open: list[PartitionClaims] = []

    def claims(self, **settings: Any) -> PartitionClaims:
        """Claims of one owner."""
        given = {"cluster": "c", "form": self.form, "table": self.table, **settings}
        self._open.append(PartitionClaims(self.server.address, **given))
        return self._open[-1]

    def sql(self, statement: str) -> None:
        """Meddle with the table."""
        drivers = {"postgresql://": "postgresql+psycopg://", "mariadb://": "mariadb+pymysql://"}
        address = self.server.address
        for short, driver in drivers.items():
            address = address.replace(short, driver)
        engine = create_engine(address)
        with engine.begin() as connection:
            connection.execute(text(statement.format(table=self.table)))
        engine.dispose()

    def close(self) -> None:
        """Close what was opened."""
        for one in self._open:
            one.close()


@pytest.fixture(
    params=[
        one if form is Form.LOCKING else pytest.param(one, marks=pytest.mark.slow) for one, (_, form) in WAYS.items()
    ]
)
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    """Each database with each form that it has."""
    found = Way(*WAYS[request.param])
    yield found
    found.close()
