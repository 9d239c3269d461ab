"""Real Sentinels promote a replica of a Redis that is killed: membership and the autoscaler's store continue."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from assignors.fleet import Agent, RedisMembers, Session, Standing
from assignors.scaling import RedisStore, State
from spark_sink.demo.cluster.ports import choose_ports
from tests.certificates import write_certificate
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SERVICE, PASSWORD = "azimuth", "canary"
STATE = State(workers=3)


class Service:
    """A master, its replica and a Sentinel, with a password, and with TLS if there is a certificate."""

    def __init__(self, root: Path, certificate: Path | None) -> None:
        self._root = root
        self._certificate = certificate
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master, self.replica, self.sentinel, self.dead = choose_ports(4)

    def start(self) -> None:
        """Start them, and wait until the Sentinel knows the replica."""
        login = [f"requirepass {PASSWORD}", f"masterauth {PASSWORD}", 'save ""']
        self._run("master", self.master, login)
        self._run("replica", self.replica, [*login, f"replicaof 127.0.0.1 {self.master}"])
        watches = [
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.master} 1",
            f"sentinel auth-pass {SERVICE} {PASSWORD}",
            f"sentinel down-after-milliseconds {SERVICE} 500",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]
        self._run("sentinel", self.sentinel, watches, "--sentinel")
        wait_until(self._known, 30, "the Sentinel knows a replica that is in step")

    def kill_master(self) -> None:
        """SIGKILL."""
        self._processes[0].kill()
        self._processes[0].wait()

    def stop(self) -> None:
        """End all."""
        for one in self._processes:
            one.kill()
            one.wait()

    @property
    def url(self) -> str:
        """The address; its first Sentinel is away."""
        scheme = "redis" if self._certificate is None else "rediss"
        tls = "" if self._certificate is None else f"?ssl_ca_certs={self._certificate}"
        hosts = f"127.0.0.1:{self.dead},127.0.0.1:{self.sentinel}"
        return f"{scheme}+sentinel://:{PASSWORD}@{hosts}/{SERVICE}/0{tls}"

    def _run(self, name: str, port: int, lines: list[str], *flags: str) -> None:
        lines = ["bind 127.0.0.1", f"dir {self._root}", f"logfile {self._root}/{name}.log", *lines]
        if self._certificate is None:
            lines = [f"port {port}", *lines]
        else:
            tls = ["tls-replication yes", "tls-auth-clients no", "port 0", f"tls-port {port}"]
            files = [f"tls-{kind}-file {self._certificate}" for kind in ("cert", "key", "ca-cert")]
            lines = [*tls, *files, *lines]
        file = self._root / f"{name}.conf"
        file.write_text("\n".join(lines) + "\n")
        self._processes.append(subprocess.Popen([str(shutil.which("redis-server")), str(file), *flags]))

    def _known(self) -> bool:
        tls: dict[str, Any] = {} if self._certificate is None else {"ssl": True, "ssl_ca_certs": str(self._certificate)}
        with contextlib.suppress(redis.RedisError), redis.Redis(port=self.sentinel, **tls) as client:
            found = client.sentinel_slaves(SERVICE)
            return any(one["master-link-status"] == "ok" for one in found)
        return False


@pytest.fixture(params=["plain", "tls"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """A service of this test's own."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server: apt install redis-server")
    certificate = None
    if request.param == "tls":
        certificate = write_certificate(tmp_path / "own.pem")
    found = Service(tmp_path, certificate)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def test_members_and_the_store_follow_a_failover(service: Service) -> None:
    """No agent leaves, and a number that was decided before is still known."""
    members = [RedisMembers(Agent(name), service.url, "f", Session(session_s=6)).start() for name in "ab"]
    store = RedisStore(service.url)
    try:
        wait_until(lambda: all(_agents(one) == {"a", "b"} for one in members), 30, "both are members")
        store.keep("t", STATE)
        assert store.state("t") == STATE
        service.kill_master()
        wait_until(lambda: _answers(store), 30, "the store answers from the replica")
        heard = [one.state().heard_s or 0.0 for one in members]
        wait_until(
            lambda: all((one.state().heard_s or 0.0) > before for one, before in zip(members, heard, strict=True)),
            30,
            "both hear of the new master",
        )
        assert all(_agents(one) == {"a", "b"} for one in members)
        assert {one.state().standing for one in members} == {Standing.MEMBER}
        assert store.state("t") == STATE
    finally:
        store.close()
        for one in members:
            one.close()


def _agents(members: RedisMembers) -> set[str]:
    view = members.state().view
    return set() if view is None else set(view.ids)


def _answers(store: RedisStore) -> bool:
    from assignors.errors import StoreError  # noqa: PLC0415

    with contextlib.suppress(StoreError):
        store.keep("u", STATE)
        return True
    return False
