"""What pydantic says of a setting, in words for who wrote the file."""

from typing import Any

_PLAIN = {
    "extra_forbidden": "unknown setting, look at its spelling and at the table it stands in",
    "missing": "needed, and not given",
    "string_too_short": "it is empty",
    "string_type": "need a text, in quotes",
    "tuple_type": "need a list, in brackets",
}


def place(error: Any) -> str:  # noqa: ANN401 -- pydantic's own dictionary
    """The setting's name, with those of the tables it stands in; empty for the file as a whole."""
    return ".".join(str(one) for one in error["loc"])


def plain(error: Any) -> str | None:  # noqa: ANN401 -- as above
    """Our words, where pydantic's are for who wrote the program."""
    return _PLAIN.get(error["type"])


def message(error: Any) -> str:  # noqa: ANN401 -- as above
    """Pydantic's words, without its prefix to ours."""
    return str(error["msg"]).removeprefix("Value error, ")
