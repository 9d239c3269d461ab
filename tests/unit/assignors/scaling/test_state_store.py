"""What the store in Redis says where there is none; what it keeps is tested on a server."""

import pytest

from assignors.errors import StoreError
from assignors.scaling.state_store import RedisStore


@pytest.mark.parametrize("url", ["redis://:canary@127.0.0.1:1/0", "redis://:canary/canary@127.0.0.1:1/0"])
def test_the_password_is_in_no_error(url: str) -> None:
    """Neither where nobody answers, nor where a character of it should have been escaped."""
    with pytest.raises(StoreError, match=r"redis://\*\*\*@127.0.0.1:1/0") as raised:
        RedisStore(url)
    assert "canary" not in str(raised.value)
