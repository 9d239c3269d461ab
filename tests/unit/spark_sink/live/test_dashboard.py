"""The Grafana dashboard asks for metrics that agents have."""

import json
import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from producer import Traffic
from producer._traffic import summarise
from producer.prometheus import TrafficCollector
from spark_sink._metrics import Metrics
from spark_sink.live._collector import StatusCollector
from tests.unit.spark_sink.live.test_server import STATUS

DASHBOARD = Path(__file__).parents[4] / "docker" / "grafana.json"


class _Quiet:
    def traffic(self) -> Traffic:
        return summarise([], "az-a")


def _known() -> set[str]:
    registry = CollectorRegistry()
    Metrics(registry)
    found = {sample.name for family in registry.collect() for sample in family.samples}
    found |= {f"{family.name}" for family in registry.collect()}
    fleet = list(StatusCollector(lambda: STATUS).collect())
    producers = TrafficCollector({"one": _Quiet()})
    found |= {sample.name for family in producers.collect() for sample in family.samples}
    return found | {sample.name for family in fleet for sample in family.samples}


def test_every_panel_asks_for_metrics_that_exist() -> None:
    """A renamed metric would leave a panel empty, and nobody would notice until it is needed."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    asked = {
        name for panel in panels for target in panel["targets"] for name in re.findall(r"azimuth_\w+", target["expr"])
    }
    assert asked
    assert asked <= _known()
