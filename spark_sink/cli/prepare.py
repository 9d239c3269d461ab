"""`azimuth prepare`: archives Spark's classes, so that agents start in half the time."""

import os
import time

import typer
from rich.console import Console

from spark_sink.errors import StartError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("prepare", rich_help_panel="Ingest into Delta or Iceberg")(prepare)


def prepare() -> None:
    """Make the start of agents on this machine shorter: archive Spark's classes, once for a Java and a Spark.

    Run it when you install or build an image. The archive, about 150 MB, is in AZIMUTH_CACHE or the user's cache.
    """
    from spark_sink.agent.start.spark_archive import (
        make_spark_archive,
        spark_archive,
    )

    archive = spark_archive()
    if os.access(archive, os.R_OK):
        typer.echo(f"{archive} is there already")
        return
    began = time.monotonic()
    try:
        with Console(stderr=True).status("a Spark runs, and its classes are archived: about 20 s"):
            make_spark_archive()
    except OSError as error:
        raise StartError(
            f"{archive} cannot be written ({error.strerror or error}): name another folder with AZIMUTH_CACHE"
        ) from error
    typer.echo(f"{archive}, {archive.stat().st_size / 1e6:.0f} MB, in {time.monotonic() - began:.1f} s")
