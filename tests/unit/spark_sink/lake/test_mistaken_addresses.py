"""Addresses that mean another folder than their author thinks, and those that look so and are valid."""

from pathlib import Path

import pytest

from spark_sink.errors import OptionError
from spark_sink.lake.conditional_put_check import doubtful_endpoint
from spark_sink.lake.mistaken_addresses import refuse_mistaken
from spark_sink.lake.table_addresses import table_uri


@pytest.mark.parametrize(
    "address",
    ["/a~b/~/x", "~flights/lake", "s3://bucket/~/{topic}", "abfss://c@a.dfs.core.windows.net/{topic}", "/a/{2}/{}"],
)
def test_other_addresses_with_these_signs_are_valid(address: str) -> None:
    """Only the first name of a path means the home folder to a shell, and only a name in braces a placeholder."""
    refuse_mistaken(address, ("{topic}",))


@pytest.mark.parametrize("address", ["s3://[x/y", "file://[x/y", "//[a", "s3://a,[::1/t"])
def test_brackets_that_are_no_host_are_refused_with_a_sentence(address: str) -> None:
    """They ended the process with a traceback."""
    with pytest.raises(
        OptionError, match=r"is not an address .*: brackets before the first / belong around an IPv6 host"
    ):
        table_uri(address)


def test_an_endpoint_with_such_brackets_is_refused_with_a_sentence() -> None:
    """Without its password."""
    with pytest.raises(OptionError, match=r"^http://\*\*\*@\[::1: is not an address"):
        doubtful_endpoint("s3://b/t", {"AWS_ENDPOINT_URL": "http://u:secret@[::1"}, {})


def test_a_home_folder_that_is_unknown_is_no_other_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a container whose user has no name: the process ended with a traceback."""

    def unknown(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    with pytest.raises(OptionError, match=r"^~/lake: only a shell .*; write the whole path$"):
        refuse_mistaken("~/lake")
