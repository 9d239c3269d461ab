"""Brokers with passwords and rights, with TLS or without: their properties, their certificate, and their clients."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from spark_sink.demo.cluster import Access

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def write_broker_certificate(folder: Path) -> None:
    """Write a key, its certificate for 127.0.0.1, which is its own authority, and both as Kafka's PEM keystore."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "ca.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "broker.pem").write_text((folder / "key.pem").read_text() + (folder / "ca.pem").read_text())


def scram_client(user: str, password: str) -> dict[str, str]:
    """Return a client's properties for a user of `guarded_access`."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
    }


def guarded_access(passwords: Mapping[str, str]) -> Access:
    """Return the access to brokers that want a password, without encryption, and allow only what a rule allows.

    Args:
        passwords: by user; `admin` is one of them, may do everything, and is the user of the brokers.
    """
    protocols = {"listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"}
    admin = passwords["admin"]
    return Access(broker=protocols | _with_rules(admin), scram=passwords, client=scram_client("admin", admin))


def secured_properties(folder: Path, admin_password: str) -> dict[str, str]:
    """Properties of a broker that wants TLS and a password (SCRAM), and has rules of rights.

    Args:
        folder: with the files of `write_broker_certificate`.
        admin_password: of the user `admin`, who may do everything, and as whom the brokers speak to each other.
    """
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "allow.everyone.if.no.acl.found": "true",
        **_with_rules(admin_password),
    }


def _with_rules(admin_password: str) -> dict[str, str]:
    admin = f'username="admin" password="{admin_password}"'
    return {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "listener.name.client.scram-sha-256.sasl.jaas.config": f"{_SCRAM} {admin};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
