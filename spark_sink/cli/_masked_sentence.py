"""The secrets that a command was given; its last sentence must not show them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_known: set[str] = set()


def note_settings(settings: Mapping[str, Any]) -> None:
    """Remember the secrets of a command's settings."""
    from spark_sink.monitoring.logs.masked_secrets import secret_values  # noqa: PLC0415 -- `azimuth --help` does not need it

    _known.update(secret_values(settings))


def masked(sentence: str, arguments: Sequence[str] = ()) -> str:
    """Return a sentence without the secrets of the command's settings and arguments.

    Args:
        sentence: what the command says.
        arguments: of the command; `NAME=VALUE` is a setting, and an address may have a password.
    """
    from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values  # noqa: PLC0415 -- as above

    return Mask(_known | {one for given in _settings(arguments) for one in secret_values(given)})(sentence)


def _settings(arguments: Iterable[str]) -> Iterable[Mapping[str, str]]:
    for word in arguments:
        flag, equals, value = word.partition("=")
        given = value if equals and flag.startswith("--") else word  # --kafka=NAME=VALUE
        yield {"": given}
        name, equals, value = given.partition("=")
        if equals:
            yield {name: value}
