"""Values that a table of claims cannot store are refused by name, before a statement runs."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assignors.claims import Claim, ClaimsError, PartitionClaims, standings

Call = Callable[[PartitionClaims, Any], object]
MINE = Claim("flights", 0, 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a database that does not exist."""
    return tmp_path / "claims.db"


@pytest.fixture
def claims(file: Path) -> Iterator[PartitionClaims]:
    """Claims of a database that is created by the first statement."""
    with PartitionClaims(f"sqlite:///{file}", cluster="c") as made:
        yield made


PARTITIONS: list[Any] = [
    ("flights", -1),
    ("flights", 1 << 31),
    ("flights", 1.5),
    ("flights", math.nan),
    ("flights", True),
    ("fl\0ights", 0),
    ("fl\ud800ights", 0),
    ("", 0),
    ("..", 0),
    ("f" * 250, 0),
    (None, 0),
]
OFFSETS: list[object] = [-1, 1 << 63, 1 << 200, 1.0, math.nan, math.inf, None, True, "7"]
COUNTS: list[object] = [0, -1, 1 << 63, 2.0, math.nan, math.inf, None, True, "7"]
CALLS: list[tuple[Call, list[object]]] = [
    (lambda claims, one: claims.register([("flights", 0), one]), PARTITIONS),
    (lambda claims, one: claims.forget([one]), PARTITIONS),
    (lambda claims, one: claims.hasten([one]), PARTITIONS),
    (lambda claims, one: claims.renew([MINE, Claim(one[0], one[1], 1)]), PARTITIONS),
    (lambda claims, one: claims.disown([Claim(one[0], one[1], 1)]), PARTITIONS),
    (lambda claims, one: claims.renew([Claim("flights", 0, one)]), [-1, 1 << 63, 0.5, None]),
    (lambda claims, one: claims.commit({MINE: 5, Claim("flights", 1, 1): one}), OFFSETS),
    (lambda claims, one: claims.claim(one), COUNTS),
]


@pytest.mark.parametrize(("call", "value"), [(call, value) for call, values in CALLS for value in values])
def test_nonsense_is_refused_before_the_database_is_asked(
    call: Call, value: object, claims: PartitionClaims, file: Path
) -> None:
    """The error is the same for every database: SQLite would accept some values, the others have different messages."""
    with pytest.raises(ClaimsError, match="need"):
        call(claims, value)
    assert not file.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"cluster": ""},
        {"cluster": "c\0"},
        {"cluster": "c" * 191},
        {"owner": "\udfff"},
        {"owner": "o" * 190},
        {"table": ""},
        {"table": "claims; DROP TABLE claims"},
        {"table": "c" * 60},
    ],
    ids=str,
)
def test_names_that_no_database_keeps_are_refused(settings: dict[str, str], file: Path) -> None:
    """Owners differ in the last letters of their names, so names must not be truncated."""
    with pytest.raises(ClaimsError, match=next(iter(settings))):
        PartitionClaims(f"sqlite:///{file}", **{"cluster": "c", **settings})  # type: ignore[arg-type]  # only text


def test_the_ends_of_the_ranges_are_kept(claims: PartitionClaims) -> None:
    """Values at the limits are accepted; numpy's integers count as whole numbers."""
    zero: Any = np.int64(0)
    claims.register([("f" * 249, (1 << 31) - 1), ("flights", zero)])
    held = claims.claim(zero + 2)
    claims.commit(dict(zip(held, (zero, (1 << 63) - 1), strict=True)))
    assert [one.committed_offset for one in claims.standings()] == [0, (1 << 63) - 1]


def test_who_only_looks_makes_no_database(file: Path) -> None:
    """A wrong path is reported, and no file is created there."""
    for address in (f"sqlite:///{file}", f"sqlite:///file:{file}?uri=true"):
        with pytest.raises(ClaimsError, match="there is no such file"):
            standings(address)
    assert not list(file.parent.iterdir())
    file.touch()
    with pytest.raises(ClaimsError, match="no such table"):
        standings(f"sqlite:///{file}")
    assert not file.stat().st_size
    with PartitionClaims(f"sqlite:///{file}", cluster="c") as claims:
        claims.register([("flights", 0)])
    for address in (f"sqlite:///{file}", f"sqlite:///file:{file}?uri=true"):
        assert [one.topic for one in standings(address)] == ["flights"]
