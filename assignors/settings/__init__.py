"""Checks of settings files, and messages about invalid values.

* `mistyped_names`: the known name that is nearest to a mistyped one; warnings about mistyped environment variables.
* `validation_errors`: pydantic's errors as sentences for the author of the file.
* `strict_numbers`: numbers that do not accept `true` as 1.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.settings.mistyped_names import nearest, proposal, warn_of_mistyped
    from assignors.settings.strict_numbers import Real, Whole, no_boolean
    from assignors.settings.validation_errors import message, place, plain
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "mistyped_names": ["nearest", "proposal", "warn_of_mistyped"],
            "strict_numbers": ["Real", "Whole", "no_boolean"],
            "validation_errors": ["message", "place", "plain"],
        },
    )

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
