"""Each alert rule at its threshold, by promtool: it fires above it for long enough, and not below it or for less."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.deploy.test_alerts import FOLDER, RULES

Series = dict[str, str]
"""Values by series; promtool has one each minute."""

_MINUTES = 120
A, B = 'job="f", instance="a"', 'job="f", instance="b"'
TOPIC = f'{A}, topic="t"'

# By rule: series by which it fires, and cases by which it does not.
CASES: dict[str, tuple[Series, dict[str, Series]]] = {
    "AzimuthFleetLag": (
        {f"azimuth_fleet_lag_seconds{{{TOPIC}}}": "301x120"},
        {
            "at the objective": {f"azimuth_fleet_lag_seconds{{{TOPIC}}}": "300x120"},
            "a peak": {f"azimuth_fleet_lag_seconds{{{TOPIC}}}": "2x116 301x4"},
        },
    ),
    "AzimuthFleetAgentNotReady": (
        {f"azimuth_fleet_ready{{{A}}}": "0x120"},
        {"ready": {f"azimuth_fleet_ready{{{A}}}": "1x120"}, "a restart": {f"azimuth_fleet_ready{{{A}}}": "1x116 0x4"}},
    ),
    "AzimuthFleetAgentIsolated": (
        {f'azimuth_fleet_standing{{{A}, standing="refused"}}': "1x120"},
        {
            "a member": {
                f'azimuth_fleet_standing{{{A}, standing="isolated"}}': "0x120",
                f'azimuth_fleet_standing{{{A}, standing="member"}}': "1x120",
            },
            "unreachable": {f'azimuth_fleet_standing{{{A}, standing="unreachable"}}': "1x120"},
        },
    ),
    "AzimuthFleetMembershipAway": (
        {f'azimuth_fleet_standing{{{A}, standing="unreachable"}}': "1x120"},
        {"isolated": {f'azimuth_fleet_standing{{{A}, standing="isolated"}}': "1x120"}},
    ),
    "AzimuthFleetViewsDiffer": (
        {f"azimuth_fleet_agents{{{A}}}": "2x120", f"azimuth_fleet_agents{{{B}}}": "3x120"},
        {
            "two fleets": {
                f"azimuth_fleet_agents{{{A}}}": "2x120",
                'azimuth_fleet_agents{job="g", instance="b"}': "3x120",
            },
            "an agent joins": {f"azimuth_fleet_agents{{{A}}}": "2x117 3x3", f"azimuth_fleet_agents{{{B}}}": "3x120"},
        },
    ),
    "AzimuthFleetProblems": (
        {f"azimuth_fleet_problems{{{A}}}": "1x120"},
        {"none": {f"azimuth_fleet_problems{{{A}}}": "0x120"}},
    ),
    "AzimuthFleetCommitsNothing": (
        {
            f"azimuth_fleet_lag_records{{{TOPIC}}}": "1x120",
            f"azimuth_fleet_commit_timestamp_seconds{{{A}}}": "0x120",
        },
        {
            "nothing to read": {
                f"azimuth_fleet_lag_records{{{TOPIC}}}": "0x120",
                f"azimuth_fleet_commit_timestamp_seconds{{{A}}}": "0x120",
            },
            "lag of another agent": {
                f"azimuth_fleet_lag_records{{{TOPIC}}}": "9x120",
                f"azimuth_fleet_commit_timestamp_seconds{{{A}}}": "0+60x120",
                f'azimuth_fleet_lag_records{{{B}, topic="u"}}': "0x120",
                f"azimuth_fleet_commit_timestamp_seconds{{{B}}}": "0x120",
            },
        },
    ),
    "AzimuthFleetRebalances": (
        {f"azimuth_fleet_rebalances_total{{{A}}}": "0+5x120"},
        {"four a minute": {f"azimuth_fleet_rebalances_total{{{A}}}": "0+4x120"}},
    ),
    "AzimuthFleetQuarantine": (
        {f"azimuth_fleet_bad_records_total{{{A}}}": "7x90 8x30"},
        {
            "old ones": {f"azimuth_fleet_bad_records_total{{{A}}}": "7x120"},
            "an agent that takes over a table with old ones": {
                f"azimuth_fleet_bad_records_total{{{A}}}": "_x90 0x30",
                f"azimuth_fleet_quarantined{{{A}}}": "_x90 0x2 7x28",
            },
        },
    ),
    "AzimuthSinkLag": (
        {f"azimuth_lag_seconds{{{TOPIC}}}": "301x120"},
        {"at the objective": {f"azimuth_lag_seconds{{{TOPIC}}}": "300x120"}},
    ),
    "AzimuthSinkFreshness": (
        {f"azimuth_freshness_seconds{{{A}}}": "601x120", f"azimuth_rows_total{{{A}}}": "0+1x120"},
        {
            "nothing to commit": {
                f"azimuth_freshness_seconds{{{A}}}": "601x120",
                f"azimuth_rows_total{{{A}}}": "9x120",
            },
            "fresh": {f"azimuth_freshness_seconds{{{A}}}": "600x120", f"azimuth_rows_total{{{A}}}": "0+1x120"},
        },
    ),
    "AzimuthSinkConflicts": (
        {f"azimuth_commit_conflicts_total{{{A}}}": "0+6x120", f"azimuth_commits_total{{{A}}}": "0+10x120"},
        {
            "every second": {
                f"azimuth_commit_conflicts_total{{{A}}}": "0+5x120",
                f"azimuth_commits_total{{{A}}}": "0+10x120",
            }
        },
    ),
    "AzimuthSinkQuarantine": (
        {f"azimuth_quarantined_total{{{A}}}": "4x90 5x30"},
        {"old ones": {f"azimuth_quarantined_total{{{A}}}": "4x120"}},
    ),
    "AzimuthScalingStopped": (
        {f"azimuth_scaling_decided_timestamp_seconds{{{A}}}": "0x120"},
        {"15 minutes ago": {f"azimuth_scaling_decided_timestamp_seconds{{{A}}}": "6300x120"}},
    ),
    "AzimuthScalingAgentsMissing": (
        {
            f'azimuth_scaling_agents_needed{{{B}, group="f"}}': "4x120",
            f"azimuth_fleet_agents{{{A}}}": "3x120",
        },
        {
            "all there": {
                f'azimuth_scaling_agents_needed{{{B}, group="f"}}': "3x120",
                f"azimuth_fleet_agents{{{A}}}": "3x120",
            },
            "pods start": {
                f'azimuth_scaling_agents_needed{{{B}, group="f"}}': "3x100 4x20",
                f"azimuth_fleet_agents{{{A}}}": "3x120",
            },
        },
    ),
}


def asked(rule: dict[str, Any], series: Series, fires: dict[int, bool]) -> dict[str, Any]:
    """A test of promtool: whether the rule fires at these minutes."""
    name = rule["alert"]
    return {
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}})',
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if firing else [],
            }
            for minute, firing in fires.items()
        ],
    }


def test_every_rule_has_cases() -> None:
    """A new rule needs some, too."""
    assert sorted(CASES) == sorted(rule["alert"] for rule in RULES)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's package prometheus")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_fires_above_its_threshold_only(rule: dict[str, Any], tmp_path: Path) -> None:
    """A rule that fires too early is muted by its readers, and then says nothing."""
    firing, quiet = CASES[rule["alert"]]
    waits = int(rule.get("for", "0m").removesuffix("m"))
    early = {waits - 1: False} if waits else {}
    tests = [asked(rule, firing, {**early, _MINUTES: True})]
    tests += [asked(rule, series, {_MINUTES: False}) for series in quiet.values()]
    run(tests, tmp_path / "test.yml")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's package prometheus")
@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if "Quarantine" in rule["alert"]], ids=lambda rule: rule["alert"]
)
def test_bad_records_before_the_first_scrape_of_an_agent_fire_for_an_hour(rule: dict[str, Any], tmp_path: Path) -> None:
    """An agent that starts with a backlog may have them before Prometheus sees it, and `increase` needs two values."""
    [series] = CASES[rule["alert"]][0]
    run([asked(rule, {series: "_x30 5x90"}, {29: False, 31: True, 89: True, 92: False})], tmp_path / "test.yml")


def run(tests: list[dict[str, Any]], file: Path) -> None:
    """Run tests of promtool on the alert rules."""
    rules = {"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(rules))
    command = ["promtool", "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
