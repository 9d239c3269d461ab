"""Access to the HTTP pages: a token that requests must carry, and TLS."""

import base64
import binascii
import hmac
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from spark_sink.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The access to the pages.

    Attributes:
        token: the token that requests must carry; empty if every request is answered. Clients send it as a bearer
            token, browsers as the password of any user name.
        tls: TLS of the server; None for plain HTTP.
    """

    token: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None

    @classmethod
    def load(cls, token: Path | None = None, certificate: Path | None = None, key: Path | None = None) -> Self:
        """Read the files.

        Args:
            token: file with the token.
            certificate: PEM file with the certificate and its chain.
            key: PEM file with the key; None if it is in the file of the certificate.

        Raises:
            OptionError: a file cannot be read or is invalid.
        """
        if key is not None and certificate is None:
            raise OptionError("--http-key: needs --http-certificate, the certificate of this key")
        return cls(
            token="" if token is None else _token(token),
            tls=None if certificate is None else _tls(certificate, key),
        )

    def allows(self, authorization: str) -> bool:
        """Return whether a request with this header `Authorization` may read."""
        if not self.token:
            return True
        kind, _, given = authorization.strip().partition(" ")
        if kind.lower() == "basic":
            given = _password(given)
        elif kind.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), self.token.encode())


OPEN = Access()
"""Every request is answered, by plain HTTP."""


def _token(file: Path) -> str:
    try:
        found = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise OptionError(f"--http-token {file}: cannot be read: {why}") from error
    if not found:
        raise OptionError(f"--http-token {file}: is empty; need a token")
    return found


def _tls(certificate: Path, key: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password of its own, OpenSSL would ask for that of an encrypted key on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        names = f"{certificate}" if key is None else f"{certificate}, {key}"
        why = error.strerror or error if isinstance(error, OSError) else error
        raise OptionError(f"--http-certificate {names}: no certificate with its unencrypted key: {why}") from error
    return context


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
