"""Checks of settings files, and messages about invalid values.

* `mistyped_names`: the known name that is nearest to a mistyped one; warnings about mistyped environment variables.
* `validation_errors`: pydantic's errors as sentences for the author of the file.
* `strict_numbers`: numbers that do not accept `true` as 1.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.settings.mistyped_names import nearest, proposal, warn_of_mistyped
    from assignors.settings.strict_numbers import Real, Whole, no_boolean
    from assignors.settings.validation_errors import message, place, plain

__all__ = [
    "Real",
    "Whole",
    "message",
    "nearest",
    "no_boolean",
    "place",
    "plain",
    "proposal",
    "warn_of_mistyped",
]

_MODULES = {
    "Real": "strict_numbers",
    "Whole": "strict_numbers",
    "message": "validation_errors",
    "nearest": "mistyped_names",
    "no_boolean": "strict_numbers",
    "place": "validation_errors",
    "plain": "validation_errors",
    "proposal": "mistyped_names",
    "warn_of_mistyped": "mistyped_names",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
