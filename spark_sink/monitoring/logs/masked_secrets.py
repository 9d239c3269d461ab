"""Hides secrets in log lines: those of the settings by their values, and passwords in addresses by their place."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

HIDDEN: Final = "***"
_NAME: Final = re.compile(
    r"(?i)secret|password|passwd|token$|access[._-]?key|account[._-]?key|credential|user[._-]?info|jaas|private[._-]?key"
    r"|sas[._-]?key|key[._-]pem|api[._-]?key|master[._-]?key|customer[._-]?key"
)
# `user:password@` of an address, even if the password has a slash or a colon.
_IN_ADDRESS: Final = re.compile(r"(?<![\w+.-])(\w[\w+.-]{0,20}://)[^\s@'\"]*:[^\s'\"]*@")
_ASSIGNED: Final = re.compile(
    r"(?i)((?:password|secret)['\"]?=\s*|(?:password|secret)['\"]:\s*|[?&]sig=|\bbearer )"
    r"(\"[^\"]*\"|'[^']*'|[^\s;,&'\"]+)"
)
_IN_JAAS: Final = re.compile(r"(?i)password\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s;]+)")
_SHORT: Final = 4  # a shorter secret is hidden only as a word of its own: every text has its letters


def secret_values(settings: object) -> frozenset[str]:
    """Return the values of settings whose names say that they are secret, and passwords in addresses.

    Args:
        settings: nested mappings and lists of texts.
    """
    return frozenset(one for one in _secrets("", settings) if one)


def _secrets(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 -- any setting
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets(str(key), inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _secrets(name, inner)
    elif isinstance(value, str):
        if _NAME.search(name) and not name.lower().endswith((".location", ".type", "_file", ".endpoint.url")):
            yield value
            yield from (one.strip("'\"") for one in _IN_JAAS.findall(value))
            if "info" in name.lower():  # user:password
                yield value.partition(":")[2]
        _, slashes, rest = value.partition("://")
        user, at, _ = rest.rpartition("@")
        if slashes and at and ":" in user:
            password = user.partition(":")[2]
            yield from (password, unquote(password))


class Mask:
    """Replaces secrets in texts.

    Args:
        secrets: values to hide wherever they occur.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = frozenset(one for one in secrets if one)
        # The longest first: one secret may be a part of another.
        known = sorted(self.secrets, key=len, reverse=True)
        parts = [re.escape(one) if len(one) >= _SHORT else rf"(?<!\w){re.escape(one)}(?!\w)" for one in known]
        self._known = re.compile("|".join(parts)) if parts else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        hidden = text if self._known is None else self._known.sub(HIDDEN, text)
        return _ASSIGNED.sub(rf"\1{HIDDEN}", _IN_ADDRESS.sub(rf"\1{HIDDEN}@", hidden))
