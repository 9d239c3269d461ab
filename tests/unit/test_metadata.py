"""What is installed says of itself what a bill of materials is made of."""

from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

OWN = "kafka-azimuth"


def test_the_licence_is_an_expression_with_its_file() -> None:
    """PEP 639: tools read the expression; a classifier or a free text beside it would contradict it."""
    said = metadata(OWN)
    assert Version(said["Metadata-Version"]) >= Version("2.4")
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE"]
    assert "License" not in said
    assert not [one for one in said.get_all("Classifier") or [] if one.startswith("License ::")]
    (file,) = [one for one in distribution(OWN).files or [] if one.name == "LICENSE"]
    assert PurePosixPath(file).parent.name == "licenses"
    assert "Apache License" in file.read_text(encoding="utf-8")


def test_name_version_summary_and_pythons_are_there() -> None:
    """With the classifiers of the Pythons that it is tested by."""
    said = metadata(OWN)
    assert Version(said["Version"]) > Version("0")
    assert said["Summary"]
    assert said["Author"]
    assert said["Description-Content-Type"] == "text/markdown"
    pythons = {f"Programming Language :: Python :: {one}" for one in ("3.11", "3.12", "3.13")}
    assert pythons | {"Typing :: Typed"} <= set(said.get_all("Classifier") or [])


@pytest.mark.parametrize("text", [one for one in distribution(OWN).requires or [] if 'extra == "dev"' not in one])
def test_what_is_asked_for_is_named_as_it_is_installed(text: str) -> None:
    """So that a bill of materials finds each part, with a version that the request allows."""
    asked = Requirement(text)
    try:
        found = metadata(asked.name)
    except PackageNotFoundError:
        pytest.fail(f"{asked.name} is asked for, and not in the locked environment")
    assert asked.specifier.contains(found["Version"], prereleases=True)
