"""Checks that several options share: no text is empty, and brokers have an address."""

import typer

from spark_sink.kafka.broker_addresses import check_servers


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
        raise typer.BadParameter(str(error)) from error


def counted(number: int, noun: str, ending: str = "s") -> str:
    """Return the number with its noun, in the plural where it is not one."""
    return f"{number} {noun}{'' if number == 1 else ending}"
