"""The Helm chart: valid for Kubernetes, true to the commands, and without secrets."""

import importlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from assignors.scaling import ScalingSettings
from spark_sink.fleet.fleet_settings import FleetSettings
from tests.unit.deploy.chart import CHART, EXAMPLES, MANIFESTS, as_file, objects, one, values

VERSIONS = ("1.25", "1.37")
"""The oldest and the newest Kubernetes that the objects are checked for."""
CUSTOM = {"ServiceMonitor", "ScaledObject", "TriggerAuthentication"}
"""Kinds of the Prometheus operator and of KEDA, which Kubernetes' schemas do not have."""
LAID_OVER = '{"home": {"kafka": {"sasl.password": "hunter2"}}}'
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)


def _pods(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The specifications of all pods."""
    found = []
    for made in objects(given):
        spec = made.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found.append(spec["template"]["spec"])
    return found


@each_example
def test_helm_lint_finds_nothing(example: Path) -> None:
    """Of severity warning or error; an icon is only recommended."""
    helm = pytest.importorskip("helm_python")
    report = helm.lint(CHART, values(example), strict=True)
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@each_example
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid_for_kubernetes(example: Path, version: str) -> None:
    """By its own schemas, which refuse unknown fields: kubectl would drop them without a word."""
    schemas = pytest.importorskip("kubernetes_validate")
    for made in objects(values(example)):
        if made["kind"] not in CUSTOM:
            schemas.validate(made, version, strict=True)


def test_the_schema_check_refuses_a_mistake() -> None:
    """Without this a check that accepts everything would look the same."""
    schemas = pytest.importorskip("kubernetes_validate")
    wrong = one("StatefulSet", values(EXAMPLES[0]))
    wrong["spec"]["template"]["spec"]["terminationGracePeriodSecond"] = 30
    with pytest.raises(schemas.ValidationError):
        schemas.validate(wrong, VERSIONS[-1], strict=True)


@each_example
def test_custom_objects_have_the_fields_of_their_kinds(example: Path) -> None:
    """No registry has the schemas of these kinds, so this lists the fields that their documentation requires."""
    for made in objects(values(example)):
        spec = made.get("spec", {})
        if made["kind"] == "ScaledObject":
            assert made["apiVersion"] == "keda.sh/v1alpha1"
            (trigger,) = spec["triggers"]
            assert trigger["type"] == "metrics-api"
            assert {"url", "valueLocation", "targetValue"} <= trigger["metadata"].keys()
            assert all(isinstance(value, str) for value in trigger["metadata"].values())
            assert spec["minReplicaCount"] <= spec["maxReplicaCount"]
        if made["kind"] == "ServiceMonitor":
            assert made["apiVersion"] == "monitoring.coreos.com/v1"
            assert {"selector", "endpoints"} <= spec.keys()
            (endpoint,) = spec["endpoints"]
            services = [made for made in objects(values(example)) if made["kind"] == "Service"]
            assert all(endpoint["port"] in {port["name"] for port in found["spec"]["ports"]} for found in services)


@each_example
def test_every_command_of_a_container_exists(example: Path) -> None:
    """A renamed command or option would be noticed only in the cluster."""
    app = typer.Typer()
    for name in ("agent", "autoscale", "claims"):
        importlib.import_module(f"spark_sink.cli.{name}").register(app)
    root = get_command(app)
    for pod in _pods(values(example)):
        (container,) = pod["containers"]
        command, context = root, typer.Context(root)
        words = list(container["args"])
        while (ask := getattr(command, "get_command", None)) and (found := ask(context, words[0])):
            command = found
            words.pop(0)
        known = {name for parameter in command.params for name in parameter.opts}
        used = {word.split("=")[0] for word in words if word.startswith("--")}
        assert used <= known, container["args"]


@each_example
def test_the_files_of_the_chart_load(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the containers read them, with the password from a Secret laid over the file."""
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "ingest-azimuth-0")
    monkeypatch.setenv("AZIMUTH_FLEET_SOURCES", LAID_OVER)
    file = tmp_path / "fleet.toml"
    file.write_text(one("ConfigMap", values(example))["data"]["fleet.toml"])
    settings = FleetSettings.load(file)
    assert settings.agent == "ingest-azimuth-0"
    home = settings.kafka("home")
    assert home["sasl.password"] == "hunter2"
    assert home["bootstrap.servers"] == tomllib.loads(file.read_text())["sources"]["home"]["bootstrap_servers"]
    if "autoscaler" in values(example):
        file.write_text(one("ConfigMap", values(example), "autoscaler")["data"]["scaling.toml"])
        assert ScalingSettings.load(file).pipelines


def test_a_changed_file_restarts_the_agents() -> None:
    """Agents read their file at the start only; of a ConfigMap of one's own the chart knows no content."""

    def pod(**fleet: str) -> str:
        made = one("StatefulSet", {**values(EXAMPLES[0]), "fleet": fleet})
        return str(made["spec"]["template"]["metadata"]["annotations"]["azimuth/fleet-file"])

    assert pod(file="a") != pod(file="b")
    assert pod(existingConfigMap="mine", checksum="a") != pod(existingConfigMap="mine", checksum="b")
    assert pod(existingConfigMap="mine", checksum="a") == pod(existingConfigMap="mine", checksum="a")
    reloaded = {"annotations": {"reloader.stakater.com/auto": "true"}}
    assert one("StatefulSet", {**values(EXAMPLES[0]), "agents": reloaded})["metadata"]["annotations"]


def test_a_number_of_agents_that_another_owns_is_left_out() -> None:
    """Each upgrade would set the number back, and a hundred agents would become three."""
    assert one("StatefulSet", values(EXAMPLES[0]))["spec"]["replicas"] == 4
    for given in ({"agents": {"replicas": None}}, values(CHART / "examples" / "scaled.yaml")):
        assert "replicas" not in one("StatefulSet", {**values(CHART / "examples" / "small.yaml"), **given})["spec"]
    none = one("StatefulSet", {**values(EXAMPLES[0]), "agents": {"replicas": 0}})
    assert none["spec"]["replicas"] == 0


def test_https_reaches_every_client_of_the_pages() -> None:
    """Probes, Prometheus and KEDA would report pods that do not answer."""
    given = {**values(CHART / "examples" / "scaled.yaml"), "serviceMonitor": {"enabled": True, "tlsConfig": {"ca": {}}}}
    for pod in [one("StatefulSet", given), one("Deployment", given, "autoscaler")]:
        (container,) = pod["spec"]["template"]["spec"]["containers"]
        probes = [container[name] for name in container if name.endswith("Probe")]
        assert {probe["httpGet"]["scheme"] for probe in probes} == {"HTTPS"}
        assert {"--http-certificate", "--http-key"} <= {word.split("=")[0] for word in container["args"]}
    (endpoint,) = one("ServiceMonitor", given)["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", {"ca": {}})
    (trigger,) = one("ScaledObject", given)["spec"]["triggers"]
    assert trigger["metadata"]["url"].startswith("https://")
    assert trigger["metadata"]["unsafeSsl"] == "true"


def test_keda_carries_the_token_of_the_pages() -> None:
    """Without it, KEDA gets no number once the pages ask for a token."""
    given = values(CHART / "examples" / "scaled.yaml")
    (trigger,) = one("ScaledObject", given)["spec"]["triggers"]
    authentication = one("TriggerAuthentication", given)
    assert trigger["metadata"]["authMode"] == "bearer"
    assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
    (target,) = authentication["spec"]["secretTargetRef"]
    assert target == {"parameter": "token", "name": "azimuth-http", "key": "token"}
    open_ = {**given, "http": {}}
    assert "authenticationRef" not in one("ScaledObject", open_)["spec"]["triggers"][0]
    assert "TriggerAuthentication" not in {made["kind"] for made in objects(open_)}


SECRETS = {
    "http": {"token": {"secret": "7012", "key": "k"}, "tls": {"secret": "7013"}},
    "image": {"pullSecrets": ["7014"]},
    "secretEnv": {"PASSWORD": {"secret": "7015", "key": "k"}},
    "secretMounts": {"7016": "/etc/ca"},
    "serviceMonitor": {"enabled": True},
    "serviceAccount": {"name": "7017"},
}


def test_names_of_digits_stay_texts() -> None:
    """Kubernetes allows such names of Secrets, and refuses a number in their place."""
    given = {**values(CHART / "examples" / "scaled.yaml"), **SECRETS, "fleet": {"existingConfigMap": "7018"}}

    def leaves(found: object) -> set[object]:
        if isinstance(found, dict):
            return set().union(*map(leaves, found.values()))
        return set().union(*map(leaves, found)) if isinstance(found, list) else {found}

    made = leaves(objects(given))
    given_names = range(7012, 7019)
    assert {str(one) for one in given_names} <= made
    assert not {*given_names} & made


@pytest.mark.parametrize("name", ["token", "tls"])
def test_null_removes_a_value_of_http(name: str) -> None:
    """Helm's way to remove what another file of values sets."""
    given = {**values(CHART / "examples" / "scaled.yaml"), "serviceMonitor": {"enabled": True}}
    without = {**given, "http": {**given["http"], name: None}}
    assert objects(without) == objects({**given, "http": {**given["http"], name: {"secret": ""}}})


@pytest.mark.parametrize(
    "given",
    [
        {"env": {"AZIMUTH_LOG_FORMAT": "text"}},
        {"secretEnv": {"AZIMUTH_LOG_FORMAT": {"secret": "s", "key": "k"}}},
    ],
)
def test_a_variable_has_one_value(given: dict[str, Any]) -> None:
    """Kubernetes refuses, or silently drops, a second one; the variable says more than the value `logFormat`."""
    for pod in _pods({**values(CHART / "examples" / "production.yaml"), "logFormat": "json", **given}):
        names = [variable["name"] for variable in pod["containers"][0].get("env", ())]
        assert names.count("AZIMUTH_LOG_FORMAT") == 1


def test_an_agent_has_the_name_of_its_pod_and_time_to_end() -> None:
    """A name that changes moves topics, and a shorter grace kills an agent in the middle of a commit."""
    spec = one("StatefulSet", values(EXAMPLES[0]))["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (name,) = [variable for variable in container["env"] if variable["name"] == "AZIMUTH_FLEET_AGENT"]
    assert name["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert spec["terminationGracePeriodSeconds"] >= 15
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_a_job_of_claims_ends_by_itself_and_tells_whether_records_are_left() -> None:
    """A job that a signal ends cannot tell that; and no pod repeats at once what the next run continues."""
    spec = one("CronJob", values(CHART / "examples" / "scaled.yaml"), "claims")["spec"]["jobTemplate"]["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["azimuth"]
    assert {"--once", "--max-runtime=540"} <= set(container["args"])
    left = [rule for rule in spec["podFailurePolicy"]["rules"] if 3 in rule.get("onExitCodes", {}).get("values", ())]
    assert [rule["action"] for rule in left] == ["FailJob"]
    assert left[0]["onExitCodes"]["containerName"] == container["name"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # required by podFailurePolicy


@each_example
def test_secrets_are_references(example: Path) -> None:
    """A value in a chart is in the release's history for every reader of the namespace."""
    secrets = [made for made in objects(values(example)) if made["kind"] == "Secret"]
    assert secrets == []
    for pod in _pods(values(example)):
        for variable in pod["containers"][0].get("env", ()):
            assert not re.search("password|secret|token", str(variable.get("value", "")), re.IGNORECASE)


@each_example
def test_pods_run_under_the_restricted_standard(example: Path) -> None:
    """Kubernetes' Pod Security Standard `restricted` is what many clusters enforce."""
    for pod in _pods(values(example)):
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@each_example
def test_selectors_select_the_pods(example: Path) -> None:
    """Of services, budgets, policies and monitors: a label that differs selects nothing, without an error."""
    made = objects(values(example))
    pods = [
        one["spec"]["template"]["metadata"]["labels"] for one in made if one["kind"] in {"StatefulSet", "Deployment"}
    ]
    for found in made:
        selector = found.get("spec", {}).get("selector") or found.get("spec", {}).get("podSelector") or {}
        wanted = selector.get("matchLabels", selector)
        if wanted and found["kind"] != "ServiceMonitor":
            assert any(wanted.items() <= labels.items() for labels in pods), found["kind"]


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"agent": {"replicas": 3}}, "agent"),
        ({"agents": {"terminationGracePeriodSeconds": 5}}, "terminationGracePeriodSeconds"),
        ({"secretEnv": {"AZIMUTH_FLEET_SOURCES": "hunter2"}}, "AZIMUTH_FLEET_SOURCES"),
        ({"http": {"port": 0}}, "port"),
        ({"http": {"token": {"secret": "s"}}}, "http.token.key is empty"),
        ({"serviceMonitor": {"interval": "often"}}, "interval"),
        ({"keda": {"minReplicas": 0}}, "minReplicas"),
        ({"fleet": {"file": ""}}, "fleet.file is empty"),
        ({"autoscaler": {"enabled": True}}, "autoscaler.config is empty"),
        ({"keda": {"enabled": True, "group": "ingest"}}, "keda.enabled needs autoscaler.enabled"),
        (
            {"claims": {"enabled": True, "topics": ["a"], "group": "g", "table": "t"}},
            "claims.bootstrapServers is empty",
        ),
        ({"claims": {"enabled": True}}, "give topics or a pattern"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(given: dict[str, Any], place: str) -> None:
    """Before anything reaches the cluster."""
    helm = pytest.importorskip("helm_python")
    with pytest.raises(helm.HelmError, match=re.escape(place)):
        objects({**values(EXAMPLES[0]), **given})


def test_the_schema_names_every_value() -> None:
    """A value without an entry would be refused, and an entry without a value is not in the documentation."""

    def differ(schema: dict[str, Any], given: dict[str, Any], place: str = "") -> list[str]:
        known = schema.get("properties")
        if known is None:
            return []
        found = [f"{place}{name}" for name in known.keys() ^ given.keys()]
        for name in known.keys() & given.keys():
            if isinstance(given[name], dict):
                found += differ(known[name], given[name], f"{place}{name}.")
        return found

    schema = json.loads((CHART / "values.schema.json").read_text())
    assert differ(schema, values(CHART / "values.yaml")) == ["global"]


@each_example
def test_the_plain_manifests_are_those_of_the_chart(example: Path) -> None:
    """`make manifests` writes them."""
    assert (MANIFESTS / example.name).read_text(encoding="utf-8") == as_file(example)
