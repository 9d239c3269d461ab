"""Reads the file of a fleet for a command."""

from pathlib import Path
from typing import TYPE_CHECKING

from spark_sink.cli._error_sentences import note_settings

if TYPE_CHECKING:
    from spark_sink.fleet.fleet_settings import FleetSettings


def load_fleet(file: Path, command: str) -> "FleetSettings":
    """Read the settings of a fleet; the command's last sentence shows none of their secrets.

    Args:
        file: TOML file of the fleet.
        command: stands for the agent's name, which a command does not need.

    Raises:
        OptionError: a setting is invalid.
    """
    from spark_sink.fleet.fleet_settings import FleetSettings

    settings = FleetSettings.load(file, agent=command)
    note_settings(settings.model_dump())
    return settings
