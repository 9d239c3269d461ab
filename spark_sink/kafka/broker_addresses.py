"""Checks addresses of brokers before a client waits for them."""

import re

_ADDRESS = re.compile(r"(?:[a-z_]+://)?(?P<host>\[[0-9a-f:.%]+\]|[^\s:/,\[\]]+)(?::(?P<port>\d+))?", re.IGNORECASE)


def check_servers(text: str) -> str:
    """Check the addresses, and return them unchanged.

    Args:
        text: host:port, separated by commas; the port is optional, an IPv6 address is in brackets.

    Raises:
        ValueError: the text is empty or a part is not an address; a client would only report that no broker answers.
    """
    for one in text.split(","):
        found = _ADDRESS.fullmatch(one.strip())
        if not found or not 0 < int(found["port"] or 9092) <= 65535:  # noqa: PLR2004 -- the largest port
            raise ValueError(f"{one.strip()!r}, need host:port, several by commas")
    return text
