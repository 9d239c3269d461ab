"""`azimuth cluster`: a three-zone Kafka on this machine."""

import typer


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(typer.Typer(help="A three-zone Kafka on this machine."), name="cluster")
