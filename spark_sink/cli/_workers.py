"""`--workers`: one number for all topics, TOPIC=K (repeatable), or both as JSON."""

import json

import typer

from spark_sink.cli._pairs import pairs

_FLAG = "--workers"


def workers(texts: list[str] | None) -> int | dict[str, int] | None:
    """Read the number of agents per topic; the caller checks for numbers below 1.

    Raises:
        typer.BadParameter: it is neither a whole number nor a list of topics or patterns with a number each.
    """
    if not texts:
        return None
    if len(texts) == 1 and ("=" not in texts[0] or texts[0].lstrip().startswith("{")):
        return _whole(texts[0])
    if bare := [one for one in texts if "=" not in one]:
        raise typer.BadParameter(
            f"{bare[0]!r} beside others: write '*={bare[0]}', which is the number for all other topics",
            param_hint=_FLAG,
        )
    return {name: _number(f"{name}={text}", text) for name, text in pairs(texts, _FLAG).items()}


def _whole(text: str) -> int | dict[str, int]:
    if not text.lstrip().startswith("{"):
        return _number(text, text)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no JSON ({error})", param_hint=_FLAG) from error
    return {name: _number(f"{name}: {number}", str(number)) for name, number in found.items()}


def _number(where: str, text: str) -> int:
    if not text.isdecimal():  # isdigit() takes a superscript, int() does not
        raise typer.BadParameter(f"{where!r}, need a whole number", param_hint=_FLAG)
    return int(text)
