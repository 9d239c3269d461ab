"""The Helm chart, rendered by Helm's own engine; `python -m tests.unit.deploy.chart` writes deploy/manifests."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "deploy" / "helm" / "azimuth"
EXAMPLES: Final = sorted((CHART / "examples").glob("*.yaml"))
MANIFESTS: Final = ROOT / "deploy" / "manifests"
_RELEASE: Final = "ingest"
_NAMESPACE: Final = "default"
_GENERATED: Final = "# Written by `make manifests` from deploy/helm/azimuth/examples/{name}.\n"


def values(example: Path) -> dict[str, Any]:
    """The values of a file."""
    return dict(yaml.safe_load(example.read_text(encoding="utf-8")))


def manifests(given: dict[str, Any]) -> dict[str, str]:
    """What the chart makes of these values: the text of each template that makes objects.

    Raises:
        helm_python.HelmError: the chart or the values are invalid.
    """
    helm = pytest.importorskip("helm_python", reason="no wheel of Helm's engine for this machine")
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(given)
        rendered = chart.render(given, name=_RELEASE, namespace=_NAMESPACE)
    texts = {name: text for name, text in sorted(rendered.items()) if name.endswith(".yaml")}
    return {name: text for name, text in texts.items() if any(yaml.safe_load_all(text))}


def objects(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The Kubernetes objects that the chart makes of these values."""
    return [one for text in manifests(given).values() for one in yaml.safe_load_all(text) if one]


def one(kind: str, given: dict[str, Any], component: str = "agent") -> dict[str, Any]:
    """The only object of a kind for a component."""
    label = "app.kubernetes.io/component"
    (found,) = [
        made for made in objects(given) if made["kind"] == kind and made["metadata"]["labels"][label] == component
    ]
    return found


def as_file(example: Path) -> str:
    """The plain manifests of an example, as one file for `kubectl apply`."""
    found = []
    for text in manifests(values(example)).values():
        lines = [line.rstrip() for line in text.strip().removeprefix("---").strip().splitlines()]
        found.append("\n".join(line for line in lines if "helm.sh/chart" not in line))
    text = "\n---\n".join(found).replace("managed-by: Helm", "managed-by: kubectl")
    return _GENERATED.format(name=example.name) + text + "\n"


if __name__ == "__main__":
    MANIFESTS.mkdir(exist_ok=True)
    for each in EXAMPLES:
        (MANIFESTS / each.name).write_text(as_file(each), encoding="utf-8")
