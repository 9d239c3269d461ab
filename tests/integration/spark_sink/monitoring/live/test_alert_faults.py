"""A real Prometheus with the alert rules, and real faults: rules on a fleet fire, and none does before."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from spark_sink.demo.cluster import Cluster
from spark_sink.demo.cluster.ports import choose_ports
from tests.integration.assignors.fleet.conftest import Wire
from tests.integration.spark_sink.fleet.fleet_process import (
    Feed,
    FleetProcesses,
    arrivals,
    config,
    delete_topics,
    make_topics,
    wait_until,
)
from tests.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RULES = Path(__file__).parents[5] / "deploy" / "prometheus" / "alerts.yml"
TOPICS = 6
SETTINGS = """assignment = 'seat'
value_format = 'json'
value_schema = '{"at": "double"}'
"""
# Minutes become seconds, so that a fault of some seconds counts.
_SHORTER = ((r"for: \d+m", "for: 1s"), (r"\[\d+[mh]\]", "[30s]"), (r"> (300|600|900)\b", "> 4"), (r"> 60\b", "> 0"))


class Prometheus:
    """Prometheus with the shorter rules, as a process."""

    def __init__(self, root: Path, targets: dict[str, list[str]]) -> None:
        [self.port] = choose_ports(1)
        text = RULES.read_text(encoding="utf-8")
        for pattern, shorter in _SHORTER:
            text = re.sub(pattern, shorter, text)
        (root / "rules.yml").write_text(text)
        jobs = [{"job_name": name, "static_configs": [{"targets": one}]} for name, one in targets.items()]
        scraped = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": jobs,
        }
        (root / "prometheus.yml").write_text(yaml.safe_dump(scraped))
        command = [str(shutil.which("prometheus")), f"--config.file={root}/prometheus.yml"]
        command += [f"--storage.tsdb.path={root}/tsdb", f"--web.listen-address=127.0.0.1:{self.port}"]
        with (root / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def ask(self, expression: str) -> list[dict[str, str]]:
        """The labels of an expression's results."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{query}", timeout=20) as answer:
            return [one["metric"] for one in json.load(answer)["data"]["result"]]

    def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        return {one["alertname"] for one in self.ask('ALERTS{alertstate="firing"}')}

    def answers(self, expression: str, results: int) -> bool:
        """Whether an expression has so many results."""
        try:
            return len(self.ask(expression)) == results
        except OSError:
            return False


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis for this test."""
    if shutil.which("prometheus") is None:
        pytest.skip("there is no prometheus: apt install prometheus")
    with running_redis(tmp_path) as server:
        yield server


def test_rules_on_a_fleet_are_fired_by_real_faults(cluster: Cluster, tmp_path: Path, redis_server: RedisServer) -> None:
    """Promtool fires them by series that were written by hand; these come from agents."""
    name = f"alerts-{redis_server.port}"
    topics = [f"{name}.t{number}" for number in range(TOPICS)]
    make_topics(cluster.bootstrap_servers, topics)
    ports = dict(zip("abc", choose_ports(3), strict=True))
    pages = {agent: f"127.0.0.1:{port}" for agent, port in ports.items()}
    wire = Wire(("127.0.0.1", redis_server.port))
    table = tmp_path / "lake" / "home"
    settings = config(name, tmp_path, cluster, SETTINGS)
    settings += f'[membership]\nkind = "redis"\nurl = "redis://127.0.0.1:{redis_server.port}/0"\n'
    cut_off = {"AZIMUTH_FLEET_MEMBERSHIP__URL": f"redis://127.0.0.1:{wire.port}/0"}
    prometheus = Prometheus(tmp_path, {"fleet": list(pages.values())})
    fired: set[str] = set()

    def fires(*alerts: str) -> None:
        """Wait until these have fired, in any order."""

        def seen() -> bool:
            fired.update(prometheus.firing())
            return fired >= set(alerts)

        wait_until(seen, 60, f"{alerts} fire", lambda: f"{sorted(fired)}\n{fleet.log('a')[-3000:]}")

    with FleetProcesses(tmp_path, settings) as fleet:
        try:
            fleet.start("a", http=pages["a"])
            fleet.start("b", http=pages["b"], more={**cut_off, "AZIMUTH_FLEET_MEMBERSHIP__KIND": "redis"})
            with Feed({cluster.bootstrap_servers: topics}, 0.3, '{"at": %s}'):
                wait_until(lambda: prometheus.answers("azimuth_fleet_ready == 1", 2), 90, "both agents are ready")
                wait_until(lambda: prometheus.answers("azimuth_fleet_agents == 2", 2), 60, "both see both")
                wait_until(lambda: table.exists() and len(arrivals(table)) == TOPICS, 60, "all topics are written")
                wait_until(lambda: not prometheus.firing(), 60, "no alert without a fault")
                second = FleetProcesses(tmp_path / "second", settings)
                with second:
                    second.start("a", http=pages["c"])
                    fires("AzimuthFleetAgentIsolated", "AzimuthFleetAgentNotReady", "AzimuthFleetProblems")
                bad = Producer({"bootstrap.servers": cluster.bootstrap_servers})
                for topic in topics:
                    bad.produce(topic, b"no JSON")
                assert bad.flush(60) == 0
                fires("AzimuthFleetQuarantine")
                wire.cut()
                fires("AzimuthFleetMembershipAway", "AzimuthFleetViewsDiffer")
                fleet.kill("b")
                fires("AzimuthFleetRebalances")
                table.rename(tmp_path / "lake" / "away")
                table.write_text("no folder")
                fires("AzimuthFleetCommitsNothing", "AzimuthFleetLag")
        finally:
            prometheus.process.kill()
            prometheus.process.wait()
            wire.close()
    assert fired >= set(re.findall(r"alert: (AzimuthFleet\w+)", RULES.read_text(encoding="utf-8")))
    delete_topics(cluster.bootstrap_servers, topics)
