"""Addresses without secrets, for messages: more people read logs, pages and probes than configurations."""

import re

_HIDDEN = "***"


def shown(address: str) -> str:
    """Return an address without secrets: without the part before the `@`, and without the values of the query.

    A password that is not escaped is hidden completely, so little is left of an invalid address.
    """
    scheme, slashes, rest = address.partition("://")
    if not slashes:  # possibly an address with a missing slash, or settings in another notation
        named = re.match(r"[\w./\\-]*", address)
        return address if named is None or named.group() == address else named.group() + _HIDDEN
    place, mark, query = rest.partition("?")
    if "@" in query:  # part of a password with a question mark, or of a value
        return f"{scheme}://{_HIDDEN}"
    _, at, host = place.rpartition("@")
    values = re.sub(r"=[^&]*", f"={_HIDDEN}", query)
    return f"{scheme}://{_HIDDEN + at if at else ''}{host}{mark}{values}"
