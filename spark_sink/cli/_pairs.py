"""`--storage NAME=VALUE`, repeatable; `@FILE` reads such lines, so that no secret is a process argument."""

from pathlib import Path

import typer

from spark_sink.cli._masked_sentence import note_settings


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
    from spark_sink.lake.storage_names import refuse_misspelt  # noqa: PLC0415 -- for the commands that have the flag

    found = pairs(texts, "--storage")
    refuse_misspelt(found)
    return found


def _lines(text: str, flag: str) -> list[tuple[str, str, str]]:
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise typer.BadParameter(f"{text[1:]}: cannot be read: {why}", param_hint=flag) from error
    parts = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return [(name.strip(), equals, value.strip()) for name, equals, value in parts]


def _where(text: str) -> str:
    if text.startswith("@"):
        return f"and {text[1:]} has a line without it"
    if text.startswith("="):
        return "and there is no name"
    word = text.partition(":")[0].split(" ")[0]
    return f"after {word!r} there is no '='" if word != text else f"{text!r} has no '='"
