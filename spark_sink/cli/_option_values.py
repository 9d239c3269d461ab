"""Values of options that several commands share.

`--storage NAME=VALUE` is repeatable; `@FILE` reads such lines, so that no secret is a process argument. `--workers` is
one number for all topics, TOPIC=K (repeatable), or both as JSON. No text is empty, and brokers have an address.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from spark_sink.cli._error_sentences import masked, note_settings
from spark_sink.kafka.broker_addresses import check_servers

_FLAG = "--workers"


def pairs(texts: list[str] | None, flag: str) -> dict[str, str]:
    """Read NAME=VALUE texts, and files of them.

    Raises:
        typer.BadParameter: a text has no name or no `=`, or a file cannot be read. No message repeats a value: it may
            be a password.
    """
    found = {}
    for text in texts or []:
        for name, equals, value in _lines(text, flag) if text.startswith("@") else [text.partition("=")]:
            if not equals or not name:
                raise typer.BadParameter(f"need NAME=VALUE, {_where(text)}", param_hint=flag)
            found[name] = value
    note_settings(found)
    return found


def storage_pairs(texts: list[str] | None) -> dict[str, str]:
    """Read the texts of `--storage`, as `pairs` does.

    Raises:
        typer.BadParameter: as `pairs`.
        OptionError: a name is mistyped.
    """
    from spark_sink.lake.storage_names import refuse_misspelt

    found = pairs(texts, "--storage")
    refuse_misspelt(found)
    return found


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file of text cannot be read, without the number of the system's error."""
    return str(error.strerror) if isinstance(error, OSError) else "it is no UTF-8"


def _lines(text: str, flag: str) -> list[tuple[str, str, str]]:
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{text[1:]}: cannot be read: {why_unreadable(error)}", param_hint=flag) from error
    parts = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return [(name.strip(), equals, value.strip()) for name, equals, value in parts]


def _where(text: str) -> str:
    if text.startswith("@"):
        return f"and {text[1:]} has a line without it"
    if text.startswith("="):
        return "and there is no name"
    word = text.partition(":")[0].split(" ")[0]
    return f"after {word!r} there is no '='" if word != text else f"{text!r} has no '='"


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
            f"{bare[0]!r} together with others: write '*={bare[0]}', which is the number for all other topics",
            param_hint=_FLAG,
        )
    return {name: _number(f"{name}={text}", text) for name, text in pairs(texts, _FLAG).items()}


def _whole(text: str) -> int | dict[str, int]:
    if not text.lstrip().startswith("{"):
        return _number(text, text)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{text!r} is no JSON ({error})", param_hint=_FLAG) from error
    return {name: _number(f"{name}: {number}", str(number)) for name, number in found.items()}


def _number(where: str, text: str) -> int:
    from spark_sink.options.option_texts import whole

    if (found := whole(text)) is None:
        raise typer.BadParameter(f"{where!r}, need a whole number", param_hint=_FLAG)
    return found


def given(text: str | None) -> str | None:
    """Accept a text that is not empty; an empty text comes from an unset variable of a script.

    Raises:
        typer.BadParameter: it is empty.
    """
    if text is not None and not text.strip():
        raise typer.BadParameter("it is empty")
    return text


def servers(text: str | None) -> str | None:
    """Accept addresses of brokers.

    Raises:
        typer.BadParameter: a part is not an address.
    """
    try:
        return text if text is None else check_servers(text)
    except ValueError as error:
        raise typer.BadParameter(masked(str(error), [text or ""])) from error


_BROKERS = typer.Option(callback=servers, help="Kafka brokers, host:port by commas.")
Brokers = Annotated[str, _BROKERS]
BrokersOrNone = Annotated[str | None, _BROKERS]
Kafka = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Kafka client property.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def counted(number: int, noun: str, ending: str = "s") -> str:
    """Return the number with its noun, in the plural where it is not one."""
    return f"{number} {noun}{'' if number == 1 else ending}"
