"""`azimuth owner`: the node that owns a key; every process computes the same."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from spark_sink.cli._option_values import AsJson, pairs, why_unreadable


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("owner", rich_help_panel="Look and check (changes nothing)")(owner)


def owner(
    keys: Annotated[
        list[str], typer.Argument(metavar="KEY", help="Keys: topics, streams, whatever is owned; - reads lines.")
    ],
    nodes: Annotated[str, typer.Option(help="Nodes by commas, or @FILE with one a line.")],
    weight: Annotated[list[str] | None, typer.Option(metavar="NODE=WEIGHT", help="Weight of a node, else 1.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many nodes of each key, best first.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the ranking.")] = 0,
    hierarchical: Annotated[bool, typer.Option("--hierarchical", help="For tens of thousands of nodes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which nodes own keys by rendezvous hashing; every process gives the same answer.

    Copies on several nodes, weights, and what moves on a change: docs/how-to/routers.md.
    """
    from assignors import Rendezvous

    rendezvous = Rendezvous(_nodes(nodes), _weights(weight), seed, hierarchical=hierarchical)
    asked = [one for key in keys for one in (_lines() if key == "-" else [key])]
    found = {key: rendezvous.top(key, top) for key in asked}
    if as_json:
        typer.echo(json.dumps(found))
        return
    width = max((len(key) for key in found), default=0)
    for key, owners in found.items():
        typer.echo(f"{key:<{width}}  {' '.join(owners)}")


def _nodes(text: str) -> list[str]:
    if not text.startswith("@"):
        return [one.strip() for one in text.split(",") if one.strip()]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(
            f"{text[1:]}: cannot be read: {why_unreadable(error)}", param_hint="--nodes"
        ) from error
    return [line.strip() for line in lines if line.strip()]


def _lines() -> list[str]:
    if sys.stdin is None:  # closed by the caller
        raise typer.BadParameter("- reads standard input, and that is closed", param_hint="KEYS")
    try:
        return sys.stdin.buffer.read().decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not UTF-8: {error}", param_hint="KEYS") from error


def _weights(texts: list[str] | None) -> dict[str, float] | None:
    found = {}
    for node, text in pairs(texts, "--weight").items():
        try:
            found[node] = float(text)
        except ValueError as error:
            raise typer.BadParameter(f"{node}={text!r}, need a number", param_hint="--weight") from error
    return found or None
