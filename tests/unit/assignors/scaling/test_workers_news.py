"""News of the workers topic without a Redis that answers; the integration tests run them on a server."""

import logging

import pytest

from assignors.errors import ScalingFileError
from assignors.scaling import NewsListener, WorkersNews
from tests.waiting import wait_until

NOBODY = "redis://:canary@127.0.0.1:1/0"


def test_a_redis_that_is_away_is_logged_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Followers look by themselves; the password is not in the log."""
    news = WorkersNews(NOBODY, "t")
    for _ in range(3):
        news.tell()
    assert caplog.text.count("followers look by themselves") == 1
    news.close()
    listener = NewsListener(NOBODY, "t", lambda: None).start()
    wait_until(lambda: "numbers arrive some seconds later" in caplog.text, 10)
    listener.close()
    assert "canary" not in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


@pytest.mark.parametrize("address", ["redis+sentinel://h", "http://h", "redis+sentinel://u:canary@h"])
def test_an_address_that_is_none_is_refused_without_its_parts(address: str) -> None:
    """In a sentence with the forms of addresses."""
    for kind in (WorkersNews, lambda url, topic: NewsListener(url, topic, lambda: None)):
        with pytest.raises(ScalingFileError, match="is not an address of Redis") as refused:
            kind(address, "t")
        assert "canary" not in str(refused.value)
