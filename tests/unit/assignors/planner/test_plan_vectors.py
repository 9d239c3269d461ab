"""The whole plans that other languages replay."""

import gzip
import json
from typing import Any

import pytest

from tests.data import plan_vectors

LARGEST_BYTES = 1_000_000


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    """The file, as its readers see it."""
    found: dict[str, Any] = json.loads(gzip.decompress(plan_vectors.FILE.read_bytes()))
    return found


def _drifted(vectors: dict[str, Any], cases: list[Any]) -> list[int]:
    return [
        number
        for number, case in enumerate(cases)
        if plan_vectors.owners(case, vectors["ids"], plan_vectors.make_plan(case, vectors["ids"])) != case["owners"]
    ]


CURE = "the planner changed: run `python -m tests.data.plan_vectors`, and change broker/ likewise"


def test_every_plan_without_caps_in_the_file_is_the_one_made_today(vectors: dict[str, Any]) -> None:
    """The broker's assignors are checked against the file: where it drifts, two languages disagree unseen."""
    assert not _drifted(vectors, [case for case in vectors["cases"] if not case["workers"]]), CURE


SOME = [pytest.param(slice(0, None, 8), id="some"), pytest.param(slice(None), id="all", marks=pytest.mark.slow)]


@pytest.mark.parametrize("some", SOME)
def test_plans_with_caps_in_the_file_are_those_made_today(vectors: dict[str, Any], some: slice) -> None:
    """As above; each takes the time of a search, so all of them are replayed only where time is left."""
    assert not _drifted(vectors, [case for case in vectors["cases"] if case["workers"]][some]), CURE


def test_the_file_covers_what_a_broker_sees(vectors: dict[str, Any]) -> None:
    """Fewer cases, or cases of only one kind, would also pass but prove less."""
    cases = vectors["cases"]
    claims = [[(t, p) for _, t, p in case["claims"]] for case in cases]
    assert len(cases) >= 2_000
    assert plan_vectors.FILE.stat().st_size < LARGEST_BYTES
    assert {case["strategy"] for case in cases} == {"hrw", "shuffled"}
    assert any(len(mine) != len(set(mine)) for mine in claims), "no partition is claimed twice"
    assert any(p >= case["topics"][t][1] for case in cases for _, t, p in case["claims"]), "no claim is out of range"
    assert any(case["racks"] for case in cases)
    assert sum(bool(case["workers"]) for case in cases) >= 400
    assert any(m[3] is not None for case in cases for m in case["members"]), "no two subscriptions differ"
    instances = [[m[1] for m in case["members"] if m[1]] for case in cases]
    assert any(len(mine) != len(set(mine)) for mine in instances), "no two members share an identity"
