"""Certificates as text or in folders, keystores and tokens reach kafka-python's clients, as they reach librdkafka."""

import datetime as dt
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from assignors.clients.kafka_python_security import TokenProvider, kafka_python_security
from assignors.clients.property_names import kafka_python_settings
from assignors.consumer.split_configuration import read
from assignors.errors import MembershipError

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
    found = kafka_python_security(config)
    assert found["ssl_check_hostname"] is False
    assert found["ssl_context"].get_ca_certs()[0]["serialNumber"] == "01"
    with pytest.raises(MembershipError, match=r"ssl\.key\.pem") as refused:
        kafka_python_security({**config, "ssl.key.pem": "no key", "ssl.key.password": "hunter2"})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("place", ["a folder", "probe"])
def test_certificates_in_a_folder_or_of_the_system_become_a_context(
    made: tuple[Any, x509.Certificate], tmp_path: Path, place: str
) -> None:
    """Librdkafka takes both; kafka-python would read the folder as a file, and its member reach no broker."""
    (tmp_path / "ca.pem").write_bytes(made[1].public_bytes(PEM))
    config = {
        "bootstrap.servers": "a:1",
        "security.protocol": "ssl",
        "ssl.ca.location": str(tmp_path) if place == "a folder" else place,
        "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384",
    }
    for settings in (read({"group.id": "g", **config}, {}).member, kafka_python_settings(config)):
        context = settings["ssl_context"]
        assert isinstance(context, ssl.SSLContext)
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert "ECDHE-RSA-AES256-GCM-SHA384" in {one["name"] for one in context.get_ciphers()}


def test_the_clients_of_a_query_get_them_too(made: tuple[Any, x509.Certificate]) -> None:
    """A source's membership and its requests of offsets are kafka-python's; a wrong text is a sentence without it."""
    text = made[1].public_bytes(PEM).decode()
    config = {"bootstrap.servers": "a:1", "ssl.ca.pem": text, "ssl.endpoint.identification.algorithm": "none"}
    found = kafka_python_settings(config)
    assert found["ssl_context"].get_ca_certs()[0]["serialNumber"] == "01"
    assert found["ssl_check_hostname"] is False
    with pytest.raises(MembershipError, match=r"cannot be read \(ssl\.ca\.pem, ssl\.endpoint"):
        kafka_python_settings({**config, "ssl.ca.pem": "hunter2"})


def test_a_keystore_is_read(made: tuple[Any, x509.Certificate], tmp_path: Path) -> None:
    """PKCS#12, as librdkafka takes it; a wrong password is one clear error."""
    key, certificate = made
    store = tmp_path / "store.p12"
    secret = serialization.BestAvailableEncryption(b"secret")
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, secret))
    config = {"ssl.keystore.location": str(store), "ssl.keystore.password": "secret"}
    assert "ssl_context" in kafka_python_security(config)
    with pytest.raises(MembershipError, match=r"ssl\.keystore\.location"):
        kafka_python_security({**config, "ssl.keystore.password": "wrong"})


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
    found = kafka_python_security({"oauth_cb": callback, "sasl.oauthbearer.config": "scope=x"})
    assert isinstance(found["sasl_oauth_token_provider"], TokenProvider)


def test_without_such_properties_nothing_is_set() -> None:
    """kafka-python reads files by itself."""
    assert kafka_python_security({"ssl.ca.location": "/ca", "security.protocol": "ssl"}) == {}
