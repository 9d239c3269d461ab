"""`--storage NAME=VALUE`, as often as needed."""

import typer


def pairs(texts: list[str] | None, flag: str) -> dict[str, str]:
    """Read NAME=VALUE texts.

    Raises:
        typer.BadParameter: a text has no name or no `=`.
    """
    found = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r}, need NAME=VALUE", param_hint=flag)
        found[name] = value
    return found
