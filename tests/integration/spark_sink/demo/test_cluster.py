"""The embedded cluster, on real brokers."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from spark_sink.demo.cluster import Cluster
from spark_sink.demo.cluster.broker_process import wait_until_gone
from spark_sink.demo.cluster.ports import choose_ports
from spark_sink.demo.topics import create_topics
from spark_sink.errors import ClusterError

pytestmark = pytest.mark.integration


def test_each_broker_says_its_zone(cluster: Cluster) -> None:
    """Clients learn the zones from broker.rack; without it nothing can be local."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    described = admin.describe_cluster().result(timeout=10)
    assert sorted(n.rack for n in described.nodes) == ["az-a", "az-b", "az-c"]


@pytest.mark.slow
def test_a_killed_broker_is_down_and_comes_back_on_its_port(cluster: Cluster) -> None:
    """Fault tests are built from `kill` and `start`."""
    cluster.kill(2)
    assert [s.state for s in cluster.status()] == ["up", "down", "up"]
    with pytest.raises(ClusterError, match="broker 2 is not running"):
        cluster.kill(2)
    cluster.start(2)
    assert [s.state for s in cluster.status()] == ["up", "up", "up"]


def test_a_second_process_can_open_it(cluster: Cluster) -> None:
    """The state file is enough to find and steer the brokers."""
    assert Cluster.open(cluster.directory).status() == cluster.status()


def test_a_live_cluster_is_not_taken_over(cluster: Cluster) -> None:
    """Starting twice in one directory must not destroy the first one's data."""
    with pytest.raises(ClusterError, match=f"a cluster runs in .*azimuth cluster down --dir {cluster.directory}"):
        Cluster.up(cluster.directory)


@pytest.mark.slow
def test_a_stale_directory_is_taken_over_and_down_leaves_nothing(tmp_path: Path) -> None:
    """Brokers that died with the machine leave a directory; the next start works all the same."""
    with Cluster.up(tmp_path / "one", racks=["az-x"]) as first:
        first.processes[1].kill()
        with Cluster.up(tmp_path / "one", racks=["az-y"]) as second:
            assert [s.broker.rack for s in second.status()] == ["az-y"]
    assert not (tmp_path / "one").exists()


@pytest.mark.slow
def test_a_broker_that_cannot_start_shows_its_log_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is in the broker's log, so the error carries its end."""
    monkeypatch.setattr("spark_sink.demo.cluster.broker_process._HEAP", "-Xmx1k")
    with pytest.raises(ClusterError, match=r"(?s)broker 1 did not come up.*heap"):
        Cluster.up(tmp_path / "c", racks=["az-a"])
    state = json.loads((tmp_path / "c" / "cluster.json").read_text())
    assert state["processes"]
    assert [s.pid for s in Cluster.open(tmp_path / "c").status()] == [None]


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """`--port` with a port that somebody else has must say which."""
    (port,) = choose_ports(1)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ClusterError, match=f"port {port} is taken"):
        Cluster.up(tmp_path / "c", port=port)


def test_a_stopped_broker_is_alive_but_silent(cluster: Cluster) -> None:
    """SIGSTOP is the fault that looks like a slow network; SIGCONT ends it."""
    cluster.kill(3, signal.SIGSTOP)
    assert cluster.status()[2].pid is not None
    cluster.kill(3, signal.SIGCONT)
    cluster.wait_until_up(30.0)


@pytest.mark.slow
def test_tied_brokers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """A killed test run or demo cannot clean up behind itself; the kernel does."""
    script = "import sys, time; from pathlib import Path; from spark_sink.demo.cluster import Cluster\n"
    script += "Cluster.up(Path(sys.argv[1]), racks=['az-a'], tied=True); print('up', flush=True); time.sleep(600)"
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "c")],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    )
    assert owner.stdout is not None
    with owner.stdout:
        assert owner.stdout.readline() == "up\n"
        owner.kill()
        owner.wait()
    identities = list(Cluster.open(tmp_path / "c").processes.values())
    assert wait_until_gone(identities, 10.0) == []


@pytest.mark.slow
def test_data_in_memory_survives_a_killed_broker_and_goes_with_the_cluster(tmp_path: Path) -> None:
    """Memory outlives the process of a broker, and nothing else may: it would be missed until the next boot."""
    with Cluster.up(tmp_path / "memory", racks=["az-a"], tied=True, in_memory=True) as cluster:
        data = (tmp_path / "memory" / "data-1").resolve()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        create_topics(cluster.bootstrap_servers, ["kept"], partitions=1, replicas=1, config={})
        cluster.kill(1)
        cluster.start(1)
        assert "kept" in admin.list_topics(timeout=30).topics
    assert not data.exists()
