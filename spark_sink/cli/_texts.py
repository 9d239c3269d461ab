"""Texts that options have in common: none is empty, brokers have an address."""

import typer

from spark_sink.kafka.broker_addresses import check_servers


def given(text: str | None) -> str | None:
    """Take a text that is not empty: an empty variable of a script is a mistake, and no name of anything.

    Raises:
        typer.BadParameter: it is empty.
    """
    if text is not None and not text.strip():
        raise typer.BadParameter("it is empty")
    return text


def servers(text: str | None) -> str | None:
    """Take addresses of brokers.

    Raises:
        typer.BadParameter: one is no address.
    """
    try:
        return text if text is None else check_servers(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
