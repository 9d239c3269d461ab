"""Certificates as text, keystores and tokens reach the member, as they reach librdkafka."""

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from assignors.consumer.consumer_errors import ArgumentError
from assignors.consumer.member_security import TokenProvider, member_security

PEM = serialization.Encoding.PEM


@pytest.fixture(scope="module")
def made() -> tuple[Any, x509.Certificate]:
    """A key and its own certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "me")])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return key, builder.sign(key, hashes.SHA256())


def test_certificates_as_text_become_a_context(made: tuple[Any, x509.Certificate]) -> None:
    """A secret store hands out texts; kafka-python takes files or a context."""
    key, certificate = made
    text = certificate.public_bytes(PEM).decode()
    secret = serialization.BestAvailableEncryption(b"secret")
    private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, secret).decode()
    config = {
        "ssl.ca.pem": text,
        "ssl.certificate.pem": text,
        "ssl.key.pem": private,
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }
    found = member_security(config)
    assert found["ssl_check_hostname"] is False
    assert found["ssl_context"].get_ca_certs()[0]["serialNumber"] == "01"
    with pytest.raises(ArgumentError, match=r"ssl\.key\.pem") as refused:
        member_security({**config, "ssl.key.pem": "no key", "ssl.key.password": "hunter2"})
    assert "hunter2" not in str(refused.value)


def test_a_keystore_is_read(made: tuple[Any, x509.Certificate], tmp_path: Path) -> None:
    """PKCS#12, as librdkafka takes it; a wrong password is one clear error."""
    key, certificate = made
    store = tmp_path / "store.p12"
    secret = serialization.BestAvailableEncryption(b"secret")
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, secret))
    config = {"ssl.keystore.location": str(store), "ssl.keystore.password": "secret"}
    assert "ssl_context" in member_security(config)
    with pytest.raises(ArgumentError, match=r"ssl\.keystore\.location"):
        member_security({**config, "ssl.keystore.password": "wrong"})


def test_a_token_is_kept_for_most_of_its_life() -> None:
    """Each connection asks for one; the identity provider must not be asked each time, nor an old one be sent."""
    asked: list[str] = []

    def callback(config: str) -> tuple[Any, ...]:
        asked.append(config)
        return f"token-{len(asked)}", time.time() + (100 if len(asked) > 1 else 0), "me", {"tenant": "a"}

    provider = TokenProvider(callback, "scope=x")
    assert [provider.token() for _ in range(3)] == ["token-1", "token-2", "token-2"]
    assert provider.extensions() == {"tenant": "a"}
    assert asked == ["scope=x"] * 2
    found = member_security({"oauth_cb": callback, "sasl.oauthbearer.config": "scope=x"})
    assert isinstance(found["sasl_oauth_token_provider"], TokenProvider)


def test_without_such_properties_nothing_is_set() -> None:
    """kafka-python reads files by itself."""
    assert member_security({"ssl.ca.location": "/ca", "security.protocol": "ssl"}) == {}
