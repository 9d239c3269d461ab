"""Addresses as messages may show them."""

import pytest

from assignors.clients.masked_addresses import shown

SECRET = "canary"  # noqa: S105 - nobody's


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("sqlite:///claims.db", "sqlite:///claims.db"),
        ("claims.db", "claims.db"),
        (f"redis://:{SECRET}@host:6379/0", "redis://***@host:6379/0"),
        (f"postgresql://user:{SECRET}@host/db?sslmode=require", "postgresql://***@host/db?sslmode=***"),
        (f"postgresql://host/db?user=u&password={SECRET}", "postgresql://host/db?user=***&password=***"),
        (f"mysql://user:p@{SECRET}@host/db", "mysql://***@host/db"),  # not escaped
        (f"redis://:{SECRET}/{SECRET}#@host/0", "redis://***@host/0"),  # not escaped
        (f"redis://:p?{SECRET}@host/0", "redis://***"),  # not escaped
        (f"postgresql:/user:{SECRET}@host/db", "postgresql***"),
        (f"host=h password={SECRET}", "host***"),
    ],
)
def test_of_an_address_no_secret_is_shown(address: str, told: str) -> None:
    """The host stays, and the user and the password are hidden."""
    assert shown(address) == told
    assert SECRET not in told
