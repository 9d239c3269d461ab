"""The page on Kubernetes shows objects and values that are valid."""

import json
import re
import textwrap
from typing import Any

import pytest
import yaml

from tests.unit.deploy.chart import EXAMPLES, ROOT, objects, one, values

TEXT = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")


def shown(language: str) -> list[str]:
    """The blocks of the page in a language."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", TEXT, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


VALUES, SCALED, HPA = (dict[str, Any](yaml.safe_load(block)) for block in shown("yaml"))


def test_the_values_of_the_page_render() -> None:
    """As a reader would paste them."""
    assert one("StatefulSet", VALUES)["spec"]["replicas"] == 4
    assert len(objects(VALUES)) == 6


def test_the_secret_of_the_page_is_laid_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """It has the form of the fleet's sources."""
    from spark_sink.fleet.fleet_settings import FleetSettings  # noqa: PLC0415 -- loads slowly

    (block,) = shown("json")
    monkeypatch.setenv("AZIMUTH_FLEET_SOURCES", block)
    file = tmp_path / "fleet.toml"
    file.write_text(VALUES["fleet"]["file"])
    settings = FleetSettings.load(file, agent="ingest-azimuth-0")
    assert settings.kafka("home")["sasl.password"] == json.loads(block)["home"]["kafka"]["sasl.password"]


def test_the_objects_of_the_page_scale_the_agents_of_the_chart() -> None:
    """The HPA is checked by Kubernetes' schema, and the ScaledObject is compared with that of the chart."""
    schemas = pytest.importorskip("kubernetes_validate")
    schemas.validate(HPA, "1.37", strict=True)
    (example,) = [file for file in EXAMPLES if file.stem == "scaled"]
    made = one("ScaledObject", {**values(example), "http": {}})["spec"]
    assert SCALED["spec"]["triggers"] == made["triggers"]
    target = one("StatefulSet", values(example))["metadata"]["name"]
    for spec in (SCALED["spec"], HPA["spec"], made):
        assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": target}
