"""Pydantic's errors about a setting, in words for the author of the file."""

from typing import TYPE_CHECKING, Any

from assignors.settings.mistyped_names import propose_setting

if TYPE_CHECKING:
    from pydantic import BaseModel

_PLAIN = {
    "extra_forbidden": "unknown setting, check its spelling and the table that it is in",
    "missing": "required, and missing",
    "string_too_short": "it is empty",
    "string_type": "need a text, in quotes",
    "tuple_type": "need a list, in brackets",
}
_CHOICES = {"literal_error", "enum"}


def place(error: Any) -> str:  # noqa: ANN401 -- pydantic's own dictionary
    """Return the setting's name, with those of its tables; empty for the file as a whole."""
    return ".".join(str(one) for one in error["loc"])


def plain(error: Any, model: "type[BaseModel]") -> str | None:  # noqa: ANN401 -- pydantic's own dictionary
    """Return a message for users in place of pydantic's messages for programmers.

    Args:
        error: pydantic's own dictionary.
        model: of the whole file, for the name that is nearest to an unknown one.
    """
    if error["type"] == "extra_forbidden" and (proposed := propose_setting(model, error["loc"])) is not None:
        return f"unknown setting; {proposed}"
    return _PLAIN.get(error["type"])


def message(error: Any) -> str:  # noqa: ANN401 -- pydantic's own dictionary
    """Return pydantic's message with the number or the choice that was given; our own messages without its prefix.

    Other values are not repeated: one may be a password.
    """
    given = error.get("input")
    if error["type"] in _CHOICES:
        return f"{given!r}, need {error['ctx']['expected']}"
    if error["type"] != "value_error" and isinstance(given, int | float):
        return f"{error['msg']}, not {given!r}"
    return str(error["msg"]).removeprefix("Value error, ")
