"""Addresses as messages may show them: logs, pages and probes are read by more people than configurations are."""

import re

_HIDDEN = "***"


def shown(address: str) -> str:
    """An address without what may be secret: who is before the `@`, and every value of the query.

    A password that should have been escaped is hidden whole, so of an address that is none little is left.
    """
    scheme, slashes, rest = address.partition("://")
    if not slashes:  # perhaps an address with a slash too few, or settings in another notation
        named = re.match(r"[\w./\\-]*", address)
        return address if named is None or named.group() == address else named.group() + _HIDDEN
    place, mark, query = rest.partition("?")
    if "@" in query:  # of a password with a question mark in it, or of a value
        return f"{scheme}://{_HIDDEN}"
    _, at, host = place.rpartition("@")
    values = re.sub(r"=[^&]*", f"={_HIDDEN}", query)
    return f"{scheme}://{_HIDDEN + at if at else ''}{host}{mark}{values}"
