"""A mistyped environment variable is named in a warning, with the one that was meant, and other variables are not."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from assignors.errors import ScalingFileError
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.settings import warn_of_mistyped
from assignors.settings.mistyped_names import mistyped
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.errors import OptionError
from spark_sink.fleet.fleet_settings import FleetSettings

Caplog = pytest.LogCaptureFixture

FILES: dict[str, type[BaseSettings]] = {
    "AZIMUTH_": AgentSettings,
    "AZIMUTH_FLEET_": FleetSettings,
    "AZIMUTH_SCALING_": ScalingSettings,
}
# Of the program itself, of its other files, and of services that Kubernetes names in every container's environment.
OTHERS = [
    *(f"{prefix}{name.upper()}" for prefix, model in FILES.items() for name in model.model_fields),
    *(f"AZIMUTH_{name}" for name in ("CACHE", "LOG_FORMAT", "CLUSTER_DIR", "BROKER_JAR", "CLAIMS_DATABASE")),
    *("AZIMUTH_PORT", "AZIMUTH_SERVICE_HOST", "AZIMUTH_SERVICE_PORT_HTTP", "AZIMUTH_PORT_9092_TCP_ADDR"),
    *("AZIMUTH_FLEET_PORT", "AZIMUTH_FLEET_SERVICE_HOST", "PATH", "KAFKA_TABLE"),
]
_SHORT = 6


@pytest.mark.parametrize("prefix", FILES)
def test_a_letter_left_out_or_two_exchanged_are_noticed_in_every_setting(prefix: str) -> None:
    """Of every setting that is long enough, with and without a key of a nested table."""
    known = FILES[prefix].model_fields
    for name in (one.upper() for one in known if len(one) >= _SHORT):
        for wrong in (name[:3] + name[4:], name[:2] + name[3] + name[2] + name[4:]):
            if wrong.lower() not in known:
                assert mistyped([f"{prefix}{wrong}"], prefix, known) == {f"{prefix}{wrong}": f"{prefix}{name}"}
                assert mistyped([f"{prefix}{wrong}__X"], prefix, known) == {f"{prefix}{wrong}__X": f"{prefix}{name}__X"}


@pytest.mark.parametrize("prefix", FILES)
def test_other_variables_are_not_taken_for_mistakes(prefix: str) -> None:
    """An operator cannot remove these variables, so a warning about them at each start would hide the others."""
    assert mistyped(OTHERS, prefix, FILES[prefix].model_fields) == {}


def test_the_value_is_not_in_the_warning(caplog: pytest.LogCaptureFixture) -> None:
    """It may be a password."""
    with caplog.at_level(logging.WARNING):
        warn_of_mistyped("AZIMUTH_FLEET_", FleetSettings.model_fields, {"AZIMUTH_FLEET_CAPCITY": "secret"})
    assert (
        "AZIMUTH_FLEET_CAPCITY is not a setting and has no effect; did you mean AZIMUTH_FLEET_CAPACITY?" in caplog.text
    )
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("wrong", "load"),
    [
        ("AZIMUTH_TABEL", lambda file: AgentSettings.load(file, {})),
        ("AZIMUTH_FLEET_TABEL", FleetSettings.load),
        ("AZIMUTH_SCALING_JOURNL", ScalingSettings.load),
    ],
)
def test_each_file_warns_when_it_is_read(
    wrong: str, load: Callable[[Path], BaseSettings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Caplog
) -> None:
    """Also if the file itself is refused, for which the mistake may be the reason."""
    file = tmp_path / "some.toml"
    file.write_text('table = "t"\n')
    monkeypatch.setenv(wrong, "x")
    with caplog.at_level(logging.WARNING), pytest.raises((OptionError, ScalingFileError)):
        load(file)
    assert f"{wrong} is not a setting" in caplog.text
