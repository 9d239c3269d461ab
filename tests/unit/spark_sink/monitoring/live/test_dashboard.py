"""The Grafana dashboard asks for metrics that agents have."""

import json
import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from producer import Traffic
from producer.prometheus import TrafficCollector
from producer.traffic_cost import summarise
from spark_sink.agent.agent_metrics import Metrics
from spark_sink.monitoring.live.status_metrics import StatusCollector
from tests.unit.spark_sink.monitoring.live.test_status_server import STATUS

DASHBOARD = Path(__file__).parents[5] / "docker" / "grafana.json"


class _Quiet:
    def traffic(self) -> Traffic:
        return summarise([], "az-a")


def _targets() -> list[dict[str, str]]:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [target for panel in panels for target in panel["targets"]]


def _labels() -> dict[str, set[str]]:
    """The labels of each metric, but for those that Prometheus adds itself."""
    registry = CollectorRegistry()
    Metrics(registry).lagging({"t": (1, 0.5)})
    found: dict[str, set[str]] = {}
    families = [*registry.collect(), *StatusCollector(lambda: STATUS).collect()]
    for family in [*families, *TrafficCollector({"one": _Quiet()}).collect()]:
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


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
    """A renamed metric would leave a panel empty, unnoticed until it is needed."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    asked = {
        name for panel in panels for target in panel["targets"] for name in re.findall(r"azimuth_\w+", target["expr"])
    }
    assert asked
    assert asked <= _known()


def test_every_label_that_a_panel_uses_is_one_of_its_metric() -> None:
    """Grouped by another, all series become one, and its legend is empty."""
    known = _labels()
    for target in _targets():
        used = {name.strip() for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for name in group.split(",")}
        used |= set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))
        metrics = re.findall(r"azimuth_\w+", target["expr"])
        assert all(used <= known[metric] | {"instance", "job"} for metric in metrics), target


def test_lag_that_each_agent_tells_of_the_whole_group_is_not_summed_up() -> None:
    """Each agent of a group knows the table's positions, those of the others too: two agents would show it twice."""
    told = [target["expr"] for target in _targets() if "azimuth_lag_" in target["expr"]]
    assert len(told) == 2
    assert all("max by (topic)" in expression and "sum" not in expression for expression in told)
