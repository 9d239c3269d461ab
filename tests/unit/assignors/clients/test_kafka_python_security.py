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

from assignors.clients.kafka_python_names import kafka_python_settings
from assignors.clients.kafka_python_security import TokenProvider, kafka_python_security
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
        "security.protocol": "ssl",
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


def test_values_may_be_numbers_and_have_blanks_before_them(made: tuple[Any, x509.Certificate]) -> None:
    """As in librdkafka. The member alone checked the broker's name, or could not read its own key."""
    secret = serialization.BestAvailableEncryption(b"12345")
    config = {
        "security.protocol": " SSL",
        "ssl.certificate.pem": made[1].public_bytes(PEM).decode(),
        "ssl.key.pem": made[0].private_bytes(PEM, serialization.PrivateFormat.PKCS8, secret).decode(),
        "ssl.key.password": 12345,
        "ssl.endpoint.identification.algorithm": " None",
        "oauth_cb": lambda argument: (argument, 0.0),
        "sasl.oauthbearer.config": None,
    }
    found = kafka_python_security(config)
    assert found["ssl_check_hostname"] is found["ssl_context"].check_hostname is False
    assert found["sasl_oauth_token_provider"].token() == ""


def test_the_clients_of_a_query_get_them_too(made: tuple[Any, x509.Certificate]) -> None:
    """A source's membership and its requests of offsets are kafka-python's; a wrong text is a sentence without it."""
    text = made[1].public_bytes(PEM).decode()
    config = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "ssl.ca.pem": text,
        "ssl.endpoint.identification.algorithm": "none",
    }
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
    config = {"security.protocol": "ssl", "ssl.keystore.location": str(store), "ssl.keystore.password": "secret"}
    assert "ssl_context" in kafka_python_security(config)
    with pytest.raises(MembershipError, match=r"ssl\.keystore\.location"):
        kafka_python_security({**config, "ssl.keystore.password": "wrong"})


def test_authorities_are_found_where_librdkafka_finds_them(made: tuple[Any, x509.Certificate], tmp_path: Path) -> None:
    """kafka-python takes one file: with a folder, or librdkafka's word `probe`, the member could not connect."""
    authority = made[1].public_bytes(PEM)
    (tmp_path / "ca.pem").write_bytes(authority)
    config = {"security.protocol": "sasl_ssl"}
    for location in (str(tmp_path), "probe"):
        assert "ssl_context" in kafka_python_security({**config, "ssl.ca.location": location})
    assert kafka_python_security({**config, "ssl.ca.location": str(tmp_path / "ca.pem")}) == {}
    commented = "# Autorité de certification\n" + authority.decode()
    assert len(kafka_python_security({**config, "ssl.ca.pem": commented})["ssl_context"].get_ca_certs()) == 1


def test_what_kafka_python_would_drop_reaches_the_connection(
    made: tuple[Any, x509.Certificate], tmp_path: Path
) -> None:
    """Its connection fails with a list of revoked certificates, and offers every cipher whatever the setting is."""
    key, certificate = made
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateRevocationListBuilder().issuer_name(certificate.subject)
    revoked = builder.last_update(now).next_update(now + dt.timedelta(days=1)).sign(key, hashes.SHA256())
    authorities = tmp_path / "ca.pem"
    authorities.write_bytes(certificate.public_bytes(PEM))
    crl = tmp_path / "crl.pem"
    crl.write_bytes(revoked.public_bytes(PEM))
    config = {"security.protocol": "ssl", "ssl.ca.location": str(authorities)}
    context = kafka_python_security({**config, "ssl.crl.location": str(crl)})["ssl_context"]
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert context.cert_store_stats() == {"x509": 1, "crl": 1, "x509_ca": 1}
    cipher = "ECDHE-RSA-AES256-GCM-SHA384"
    chosen = kafka_python_security({**config, "ssl.cipher.suites": cipher})["ssl_context"].get_ciphers()
    assert [one["name"] for one in chosen if one["protocol"] != "TLSv1.3"] == [cipher]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"security.protocol": "ssl", "ssl.keystore.location": None}, id="none"),
        pytest.param({"security.protocol": "ssl", "ssl.ca.pem": ""}, id="empty"),
        pytest.param({"ssl.keystore.location": "/no/such/file"}, id="without TLS"),
        pytest.param({"security.protocol": "sasl_plaintext", "ssl.ca.pem": "no certificate"}, id="with SASL alone"),
    ],
)
def test_what_no_connection_needs_is_not_read(config: dict[str, Any]) -> None:
    """A property that is None or empty is not set, and without TLS librdkafka opens no file."""
    assert kafka_python_security(config) == {}


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
