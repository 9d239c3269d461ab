"""Options of the commands that serve HTTP."""

from pathlib import Path
from typing import Annotated

import typer

Token = Annotated[Path | None, typer.Option("--http-token", help="File with a token that requests must carry.")]
Certificate = Annotated[Path | None, typer.Option("--http-certificate", help="Serve HTTPS by this PEM certificate.")]
Key = Annotated[Path | None, typer.Option("--http-key", help="Its key, unless it is in the certificate's file.")]


def refuse_without_http(
    http: str | None, token: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> None:
    """Refuse options of pages that are not served: an operator would take the process for watched.

    Raises:
        typer.BadParameter: one is given without `--http`.
    """
    given = {"--http-token": token, "--http-certificate": certificate, "--http-key": key}
    stray = next((name for name, value in given.items() if value is not None), None)
    if http is None and stray is not None:
        raise typer.BadParameter("it has no effect without --http, the address of the pages", param_hint=stray)
