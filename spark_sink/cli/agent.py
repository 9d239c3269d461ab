"""`azimuth agent`: one agent of a fleet, over many clusters."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_sink.cli._option_values import given
from spark_sink.cli._process_options import Certificate, Format, Key, Token, logged, refuse_without_http
from spark_sink.monitoring.logs.line_format import LogFormat

if TYPE_CHECKING:
    from spark_sink.fleet.fleet_settings import FleetSettings

_FAULTS_S = 3.0  # after the start, because the checks take processor time from it


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("agent", rich_help_panel="Ingest into Delta or Iceberg")(agent)


def agent(
    config: Annotated[Path, typer.Option(help="TOML file of the fleet.")],
    name: Annotated[
        str | None, typer.Option("--agent", callback=given, help="This agent's permanent name; it replaces the file's.")
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            callback=given, metavar="[HOST]:PORT", help="Serve the live page, metrics and probes; :8080 is local."
        ),
    ] = None,
    *,
    http_token: Token = None,
    http_certificate: Certificate = None,
    http_key: Key = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file, brokers, rights, tables and the agent's name.")
    ] = False,
    log_format: Format = LogFormat.TEXT,
) -> None:
    """Ingest the topics of this agent until SIGTERM or Ctrl-C.

    One file serves all agents: AZIMUTH_FLEET_AGENT, AZIMUTH_FLEET_CAPACITY and AZIMUTH_FLEET_ZONE tell them apart.
    To drain an agent, send SIGTERM: it hands its topics to the other agents before it ends.
    """
    refuse_without_http(http, http_token, http_certificate, http_key)
    import os
    import threading

    from assignors.lazy_imports import left_out

    with left_out("rich"):  # structlog imports it for tracebacks in colour, which this log never has
        from spark_sink.monitoring.logs import process_log  # noqa: F401
    from spark_sink.fleet.fleet_settings import FleetSettings

    if name:
        os.environ["AZIMUTH_FLEET_AGENT"] = name
    settings = FleetSettings.load(config)
    from spark_sink.monitoring.live import Access

    address = None
    if http:
        from spark_sink.monitoring.live import parse_address

        address = parse_address(http)
    access = Access.load(http_token, http_certificate, http_key)
    if check:
        from spark_sink.cli._check_lines import only_findings, report

        with only_findings(settings.model_dump()):
            from spark_sink.fleet.agent_checks import run_checks

            report(run_checks(settings, address))
    with logged(log_format, settings.model_dump(), agent=settings.agent):
        from spark_sink.fleet.agent_process import run

        faults = threading.Timer(_FAULTS_S, _log_faults, [settings])
        faults.daemon = True
        faults.start()
        run(settings, address, access, _leave_out_pandas)


def _log_faults(settings: "FleetSettings") -> None:
    from spark_sink.fleet.agent_checks import log_faults

    log_faults(settings)


def _leave_out_pandas() -> None:
    from spark_sink.fleet.arrow_without_pandas import leave_out_pandas

    leave_out_pandas()
