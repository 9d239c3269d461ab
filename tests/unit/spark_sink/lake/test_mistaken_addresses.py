"""Addresses that mean another folder than their author thinks, and those that look so and are valid."""

from pathlib import Path

import pytest

from spark_sink.errors import OptionError
from spark_sink.lake.mistaken_addresses import refuse_mistaken


@pytest.mark.parametrize(
    "address",
    ["/a~b/~/x", "~flights/lake", "s3://bucket/~/{topic}", "abfss://c@a.dfs.core.windows.net/{topic}", "/a/{2}/{}"],
)
def test_other_addresses_with_these_signs_are_valid(address: str) -> None:
    """Only the first name of a path means the home folder to a shell, and only a name in braces a placeholder."""
    refuse_mistaken(address, ("{topic}",))


def test_a_home_folder_that_is_unknown_is_no_other_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a container whose user has no name: the process ended with a traceback."""

    def unknown(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    with pytest.raises(OptionError, match=r"^~/lake: only a shell .*; write the whole path$"):
        refuse_mistaken("~/lake")
