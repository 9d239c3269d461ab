"""Options of the commands that serve HTTP."""

from pathlib import Path
from typing import Annotated

import typer

Token = Annotated[Path | None, typer.Option("--http-token", help="File with a token that requests must carry.")]
Certificate = Annotated[Path | None, typer.Option("--http-certificate", help="Serve HTTPS by this PEM certificate.")]
Key = Annotated[Path | None, typer.Option("--http-key", help="Its key, unless it is in the certificate's file.")]
