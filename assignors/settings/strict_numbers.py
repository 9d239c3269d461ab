"""Numbers in settings: `true` is none, though Python takes it for 1."""

from typing import Annotated, TypeVar

from pydantic import BeforeValidator

_Value = TypeVar("_Value")


def no_boolean(value: _Value) -> _Value:
    """Let everything pass but true and false.

    Raises:
        ValueError: it is one of them.
    """
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is no number")  # noqa: TRY004 -- pydantic takes only this one up
    return value


Whole = Annotated[int, BeforeValidator(no_boolean)]
Real = Annotated[float, BeforeValidator(no_boolean)]
