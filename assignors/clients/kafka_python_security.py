"""TLS and OAuth for kafka-python's clients: translates what librdkafka takes and kafka-python does not."""

import ssl
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kafka.net.sasl.oauth import AbstractTokenProvider

from assignors.clients.librdkafka_values import FALSE, text
from assignors.errors import MembershipError

_CONTEXT: Final = (
    "enable.ssl.certificate.verification",
    "ssl.ca.pem",
    "ssl.certificate.pem",
    "ssl.cipher.suites",  # kafka-python reads its own setting for them, and ignores it
    "ssl.crl.location",  # kafka-python gives it to Python under a name that does not exist
    "ssl.key.pem",
    "ssl.keystore.location",
)
_TLS: Final = frozenset({"ssl", "sasl_ssl"})
_PROBE: Final = "probe"  # librdkafka's word for the places where systems keep their certificates
_RENEW: Final = 0.8  # of a token's life, as in librdkafka


def kafka_python_security(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of kafka-python's consumer for tokens, and for TLS where kafka-python reads other things.

    As in librdkafka, certificates and keys are read only if security.protocol needs them.

    Args:
        config: librdkafka's properties.

    Raises:
        MembershipError: a certificate, a key or a keystore cannot be read.
    """
    found: dict[str, Any] = {}
    if text(config.get("ssl.endpoint.identification.algorithm")).lower() == "none":
        found["ssl_check_hostname"] = False
    if _needs_context(config):
        found["ssl_context"] = _context(config)
    if (callback := config.get("oauth_cb")) is not None:
        found["sasl_oauth_token_provider"] = TokenProvider(callback, text(config.get("sasl.oauthbearer.config")))
    return found


class TokenProvider(AbstractTokenProvider):
    """Tokens of an `oauth_cb`, reused for most of their lifetime.

    Args:
        callback: as for confluent_kafka: gets `sasl.oauthbearer.config`, returns a token, its expiry time in seconds
            since 1970, and optionally a principal and extensions.
        config: the callback's argument.
    """

    def __init__(self, callback: Callable[[str], tuple[Any, ...]], config: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # kafka-python
        self._callback = callback
        self._config = config
        self._lock = threading.Lock()
        self._renew_at = 0.0
        self._given: tuple[Any, ...] = ()

    def token(self) -> str:
        """Return a token that has not expired."""
        with self._lock:
            now = time.time()
            if now >= self._renew_at:
                self._given = self._callback(self._config)
                self._renew_at = now + _RENEW * (float(self._given[1]) - now)
            return str(self._given[0])

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions that came with the token."""
        has_extensions = 3
        return dict(self._given[has_extensions]) if len(self._given) > has_extensions else {}


def _needs_context(config: Mapping[str, Any]) -> bool:
    if text(config.get("security.protocol")).lower() not in _TLS:
        return False
    # kafka-python takes no folder of certificates.
    return any(text(config.get(name)) for name in _CONTEXT) or _finds_authorities(text(config.get("ssl.ca.location")))


def _finds_authorities(location: str) -> bool:
    return location == _PROBE or (location != "" and Path(location).is_dir())


def _context(config: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if text(config.get("ssl.endpoint.identification.algorithm")).lower() == "none":
        context.check_hostname = False
    if str(config.get("enable.ssl.certificate.verification", True)).lower() in FALSE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        _trust(context, config)
        _identify(context, config)
        if suites := text(config.get("ssl.cipher.suites")):
            context.set_ciphers(suites)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; neither contains the text of a key
        named = ", ".join(sorted(name for name in config if name.startswith("ssl.")))
        raise MembershipError(f"certificates or keys cannot be read ({named}): {error}") from error
    return context


def _trust(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    location, pem = text(config.get("ssl.ca.location")), text(config.get("ssl.ca.pem"))
    location = "" if location == _PROBE else location
    if location:
        path = Path(location)
        context.load_verify_locations(**{"capath" if path.is_dir() else "cafile": str(path)})
    if pem:
        # Comments between certificates may have other letters, which Python refuses and OpenSSL skips.
        context.load_verify_locations(cadata=pem.encode("ascii", "ignore").decode())
    if not location and not pem:
        context.load_default_certs()
    if crl := text(config.get("ssl.crl.location")):
        context.load_verify_locations(crl)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    password = text(config.get("ssl.key.password"))
    certificate, key = _certificate_and_key(config)
    if certificate is None:
        return
    # OpenSSL reads a chain only from files.
    with TemporaryDirectory() as folder:  # readable by this user only
        chain, private = Path(folder, "chain.pem"), Path(folder, "key.pem")
        chain.write_bytes(certificate)
        if key is not None:
            private.write_bytes(key)
        context.load_cert_chain(chain, private if key is not None else None, password or None)


def _certificate_and_key(config: Mapping[str, Any]) -> tuple[bytes | None, bytes | None]:
    if keystore := text(config.get("ssl.keystore.location")):
        return _from_keystore(Path(keystore), config.get("ssl.keystore.password"))
    found: list[bytes | None] = []
    for name in ("ssl.certificate", "ssl.key"):
        pem, location = text(config.get(f"{name}.pem")), text(config.get(f"{name}.location"))
        read = Path(location).read_bytes() if location else None
        found.append(pem.encode() if pem else read)
    return found[0], found[1]


def _from_keystore(path: Path, password: object) -> tuple[bytes, bytes]:
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 -- only keystores need it
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415 -- only keystores need it
    except ImportError as error:
        raise MembershipError(
            f"ssl.keystore.location={str(path)!r}: a keystore needs `pip install 'kafka-azimuth[keystore]'`, or give "
            "ssl.certificate.location and ssl.key.location"
        ) from error
    secret = None if password is None else text(password).encode()
    key, certificate, others = pkcs12.load_key_and_certificates(path.read_bytes(), secret)
    if key is None or certificate is None:
        raise ValueError(f"{path} holds no key with its certificate")
    pem = serialization.Encoding.PEM
    chain = b"".join(one.public_bytes(pem) for one in (certificate, *others))
    plain = serialization.NoEncryption()
    return chain, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
