"""Numbers in settings: `true` is not accepted, although Python treats it as 1."""

from typing import Annotated, TypeVar

from pydantic import BeforeValidator

_Value = TypeVar("_Value")


def no_boolean(value: _Value) -> _Value:
    """Return the value unless it is true or false.

    Raises:
        ValueError: it is true or false.
    """
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number")  # noqa: TRY004 -- pydantic handles only this class
    return value


Whole = Annotated[int, BeforeValidator(no_boolean)]
Real = Annotated[float, BeforeValidator(no_boolean)]
