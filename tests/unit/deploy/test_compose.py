"""The compose file, without an engine: its files load, and Prometheus scrapes what runs."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
import yaml

from assignors.scaling import ScalingSettings
from spark_sink.cli import _app
from spark_sink.fleet.fleet_settings import FleetSettings
from tests.unit.deploy.chart import ROOT

FOLDER = ROOT / "docker"
SERVICES: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]
OURS = {name: service for name, service in SERVICES.items() if "AZIMUTH_IMAGE" in service["image"]}
WATCHED = {"agent-1", "agent-2", "fleet-1", "fleet-2", "claims-1", "claims-2", "autoscaler"}


def test_prometheus_scrapes_every_process_and_has_the_alert_rules() -> None:
    """A service without a target would be watched by no rule."""
    scraped = yaml.safe_load((FOLDER / "prometheus.yaml").read_text(encoding="utf-8"))
    targets = [one for job in scraped["scrape_configs"] for fixed in job["static_configs"] for one in fixed["targets"]]
    assert {target.partition(":")[0] for target in targets} == WATCHED == OURS.keys() - {"load"}
    mounts = [one.split(":")[:2] for one in SERVICES["prometheus"]["volumes"]]
    assert [str(Path(inside).name) for _, inside in mounts] == ["prometheus.yml", *scraped["rule_files"]]
    assert all((FOLDER / outside).is_file() for outside, _ in mounts)


def test_the_files_of_the_fleet_and_of_the_autoscaler_load() -> None:
    """And agree on the group, the workers topic and the topics."""
    fleet = FleetSettings.load(FOLDER / "fleet.toml", agent="fleet-1")
    scaling = ScalingSettings.load(FOLDER / "scaling.toml")
    assert scaling.workers_topic == fleet.workers.topic
    assert list(scaling.groups) == [fleet.name] == list(scaling.agents)
    assert {one.pattern for one in scaling.pipelines.values()} == {fleet.sources["home"].pattern}


def commands() -> typer.Typer:
    """All commands."""
    app = typer.Typer()
    for command in _app.COMMANDS:
        importlib.import_module(f"spark_sink.cli.{command}").register(app)
    return app


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_flag_of_a_service_is_one_of_its_command(name: str) -> None:
    """A renamed flag would end the service at its start."""
    command: Any = typer.main.get_command(commands())
    words = list(OURS[name]["command"])
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        command = command.commands.get(words.pop(0)) or pytest.fail(f"no such command: {OURS[name]['command']}")
    known = {flag for parameter in command.params for flag in parameter.opts}
    assert {re.split("=", word)[0] for word in words if word.startswith("--")} <= known
