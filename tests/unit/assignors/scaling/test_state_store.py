"""Errors of the Redis store without a server; the integration tests run it on a server."""

import pytest

from assignors.errors import StoreError
from assignors.scaling.state_store import RedisStore


@pytest.mark.parametrize("url", ["redis://:canary@127.0.0.1:1/0", "redis://:canary/canary@127.0.0.1:1/0"])
def test_the_password_is_in_no_error(url: str) -> None:
    """The password is hidden if the server does not answer, and if one of its characters is not escaped."""
    with pytest.raises(StoreError, match=r"redis://\*\*\*@127.0.0.1:1/0") as raised:
        RedisStore(url)
    assert "canary" not in str(raised.value)
