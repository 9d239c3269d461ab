"""The alert rules: valid PromQL on metrics and labels that exist, and each fired by a fault."""

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml

from spark_sink.monitoring.live import ScalingFigures, TopicFigures
from tests.unit.deploy.chart import ROOT
from tests.unit.spark_sink.monitoring.live.test_dashboard import _labels

FOLDER = ROOT / "deploy" / "prometheus"
GROUPS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
OF_PROMETHEUS = {"instance", "job"}
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


def exported() -> dict[str, set[str]]:
    """The labels of each metric of agents, producers and the autoscaler."""
    figures = ScalingFigures(30.0)
    figures.needs("ingest", 3, "a reason")
    figures.round([TopicFigures("ingest", "t", 1, 0)], complete=True)
    found = _labels()
    for sample in (sample for family in figures.collect() for sample in family.samples):
        found.setdefault(sample.name, set()).update(sample.labels)
    return found


EXPORTED = exported()


def selectors(node: Any) -> Iterator[Any]:
    """The vector selectors of an expression."""
    kind = type(node).__name__
    if kind == "VectorSelector":
        yield node
    elif kind == "MatrixSelector":
        yield node.vector_selector
    elif kind == "Call":
        for argument in node.args:
            yield from selectors(argument)
    elif kind == "BinaryExpr":
        yield from selectors(node.lhs)
        yield from selectors(node.rhs)
    elif kind in {"AggregateExpr", "ParenExpr", "UnaryExpr"}:
        yield from selectors(node.expr)
    else:
        assert kind in {"NumberLiteral", "StringLiteral"}, kind


@each_rule
def test_every_metric_and_label_of_a_rule_is_exported(rule: dict[str, Any]) -> None:
    """A rule on a metric that was renamed never fires, and nothing else shows it."""
    found = list(selectors(promql_parser.parse(rule["expr"])))
    assert found
    for one in found:
        assert one.name in EXPORTED, one.name
        assert {matcher.name for matcher in one.matchers.matchers} <= EXPORTED[one.name] | OF_PROMETHEUS


@each_rule
def test_a_rule_says_what_is_wrong_and_where_to_look(rule: dict[str, Any]) -> None:
    """Someone reads it at night."""
    assert rule["alert"].startswith("Azimuth")
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert {"summary", "description"} == set(rule["annotations"])
    assert rule["annotations"]["description"].endswith(".")


def test_every_rule_is_fired_by_a_fault_and_quiet_without_one() -> None:
    """In the file that promtool runs."""
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    names = {rule["alert"] for rule in RULES}
    fired = {
        sample["labels"].split('"')[1]
        for test in tests
        for question in test.get("promql_expr_test", ())
        for sample in question["exp_samples"]
    }
    assert fired == names
    for test in tests[:2]:
        assert {one["alertname"] for one in test["alert_rule_test"]} == names
        assert not [one for one in test["alert_rule_test"] if "exp_alerts" in one]
    told = {series["series"].split("{")[0] for test in tests for series in test["input_series"]}
    assert told <= EXPORTED.keys()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's package prometheus")
def test_promtool_accepts_the_rules_and_fires_each() -> None:
    """Prometheus' own evaluation over series of each fault."""
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            ["promtool", *arguments],  # noqa: S607 -- from the path
            cwd=FOLDER,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
