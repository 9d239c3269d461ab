"""The records of the pauses."""

import pytest

from assignors.errors import PauseError
from assignors.pauses import Pause, PausedTopic, PausesFeed
from assignors.pauses.pause_records import decode, decode_key, encode, encode_key


def test_a_record_is_read_as_it_was_written() -> None:
    """Also with a slash in the group, which a fleet's name cannot have, and another group can."""
    name, pause = PausedTopic("team/ingest", "flights.JFK"), Pause(at_ms=1_767_225_600_000, by="ops@h", reason="é")
    assert decode_key(encode_key(name)) == name
    assert decode(encode(pause)) == pause


@pytest.mark.parametrize("key", [None, b"", b"x", b"/x", b"x/", b"\xff/x"])
def test_foreign_keys_are_ignored(key: bytes | None) -> None:
    """Any program with the right may write to the topic."""
    assert decode_key(key) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"{",
        b"[]",
        b'{"v":2,"paused":true,"at_ms":1}',
        b'{"v":1,"paused":1,"at_ms":1}',
        b'{"v":1,"paused":true}',
        b'{"v":1,"paused":true,"at_ms":true}',
        b'{"v":1,"paused":true,"at_ms":1e300}',
    ],
)
def test_foreign_values_are_ignored(value: bytes | None) -> None:
    """As records of a later version are."""
    assert decode(value) is None


def test_a_property_that_kafkas_client_does_not_know_is_named() -> None:
    """Not only by a trace of the client's own error."""
    with pytest.raises(PauseError, match=r"no\.such\.property"):
        PausesFeed({"bootstrap.servers": "b:1", "no.such.property": "1"})
