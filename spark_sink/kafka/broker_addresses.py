"""Addresses of brokers, checked before a client waits for them."""

import re

_ADDRESS = re.compile(r"(?:[a-z_]+://)?(?P<host>\[[0-9a-f:.%]+\]|[^\s:/,\[\]]+)(?::(?P<port>\d+))?", re.IGNORECASE)


def check_servers(text: str) -> str:
    """Return the addresses as they are.

    Args:
        text: host:port by commas; the port may be left out, an IPv6 address stands in brackets.

    Raises:
        ValueError: the text is empty or a part is no address; a client would only report that no broker answers.
    """
    for one in text.split(","):
        found = _ADDRESS.fullmatch(one.strip())
        if not found or not 0 < int(found["port"] or 9092) <= 65535:  # noqa: PLR2004 -- the largest port there is
            raise ValueError(f"{one.strip()!r}, need host:port, several by commas")
    return text
