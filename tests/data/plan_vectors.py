"""Whole plans for other languages: made here through `plan()`, replayed by the broker's assignors in Java.

`python -m tests.data.plan_vectors` writes `plan_vectors.json.gz` again. A case is

    {"strategy", "epsilon", "seed", "topics": [[id number, partitions], ...], "racks": per topic, per partition names,
     "members": [[id, instance, rack, topic numbers or null for all], ...],
     "claims": [[member, topic, partition], ...], "workers": null, or per topic the most members, null for all,
     "owners": per topic the member of each partition, -1 for none}

where members and topics are numbers within the case, and a topic's id number points into the file's `ids`: the text of
Kafka's topic ids, which stand for names here, because a broker's assignor knows no names.
"""

import gzip
import json
import random
from base64 import urlsafe_b64encode
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assignors import Member, Plan, Topic, plan

FILE: Final = Path(__file__).with_suffix(".json.gz")
_COUNTS: Final = {
    "equal": 1200,
    "unequal": 500,
    "racks": 400,
    "both": 300,
    "capped": 240,
    "capped unequal": 80,
    "capped racks": 80,
    "capped many": 40,
    "capped tight": 24,
}
KINDS: Final = tuple(_COUNTS)
_RACKED: Final = {"racks", "both", "capped racks"}
_RACKS: Final = ("az-a", "az-b", "az-c")
_INSTANCES: Final = (
    "agent-{}",
    "host-{}",
    "host-1-{}",
    "rack/{}:7",
    "zürich_{}",
    "日本.{}",
    "\U0001f40e{}",
    "\uffee{}",
)

Case = dict[str, Any]


@dataclass(slots=True)
class Draft:
    """A group that changes from plan to plan: what a case is drawn from."""

    kind: str
    topics: list[list[int]]
    members: list[list[Any]]
    claims: list[list[int]]


def read_topics(case: Case, ids: list[str]) -> list[Topic]:
    """Topics of a case, named by their ids."""
    racks = case["racks"] or [None] * len(case["topics"])
    return [
        Topic(ids[number], size, racks=None if sets is None else [frozenset(s) for s in sets])
        for (number, size), sets in zip(case["topics"], racks, strict=True)
    ]


def read_members(case: Case, ids: list[str]) -> list[Member]:
    """Members of a case; all claims are of one generation, as KIP-848 has none."""
    names = [ids[number] for number, _ in case["topics"]]
    owned = defaultdict(set)
    for member, topic, partition in case["claims"]:
        owned[member].add((names[topic], partition))
    return [
        Member(
            id=name,
            topics=frozenset(names if wanted is None else (names[t] for t in wanted)),
            rack=rack,
            owned=frozenset(owned[number]),
            instance=instance,
        )
        for number, (name, instance, rack, wanted) in enumerate(case["members"])
    ]


def make_plan(case: Case, ids: list[str]) -> Plan:
    """Plan a case."""
    settings = {name: case[name] for name in ("strategy", "epsilon", "seed")}
    names = [ids[number] for number, _ in case["topics"]]
    workers = dict(zip(names, case["workers"], strict=True)) if case["workers"] else None
    return plan(read_topics(case, ids), read_members(case, ids), workers=workers, **settings)


def owners(case: Case, ids: list[str], made: Plan) -> list[list[int]]:
    """A plan as the file has it."""
    out = [[-1] * size for _, size in case["topics"]]
    place = {ids[number]: at for at, (number, _) in enumerate(case["topics"])}
    number_of = {member[0]: number for number, member in enumerate(case["members"])}
    for member, mine in made.partitions.items():
        for topic, partition in mine:
            out[place[topic]][partition] = number_of[member]
    return out


def make_vectors(seed: int = 19, share: float = 1.0) -> dict[str, Any]:
    """Draw groups that grow, shrink, lose claims and make false ones, and plan each step.

    Args:
        seed: another seed draws other groups.
        share: how many cases to draw, relative to the file.
    """
    dice = random.Random(seed)
    ids = [urlsafe_b64encode(dice.randbytes(16)).decode().rstrip("=") for _ in range(120)]
    cases: list[Case] = []
    for kind in KINDS:
        end = len(cases) + round(share * _COUNTS[kind])
        while len(cases) < end:
            draft = _draft(dice, kind)
            for _ in range(min(4, end - len(cases))):
                case = _case(dice, draft)
                case["owners"] = owners(case, ids, make_plan(case, ids))
                cases.append(case)
                _change(dice, draft, case["owners"])
    return {"source": "tests/data/plan_vectors.py", "ids": ids, "cases": cases}


def _draft(dice: random.Random, kind: str) -> Draft:
    if kind == "capped many":
        return _draft_many(dice)
    if kind == "capped tight":
        return _draft_tight(dice)
    large = dice.random() < 0.03
    count = dice.randint(0, 90) if large else dice.randint(0, 9)
    largest = dice.choice((1, 1, 3, 12))
    topics = [[number, dice.randint(0, largest)] for number in dice.sample(range(120), count)]
    draft = Draft(kind, topics, [], [])
    for _ in range(dice.randint(1, 40 if large else 8)):
        _join(dice, draft)
    return draft


def _draft_many(dice: random.Random) -> Draft:
    """Draw more members than the search plans one hand-over at a time for."""
    size = dice.randint(2, 4)
    draft = Draft("capped many", [[number, size] for number in dice.sample(range(120), dice.randint(30, 60))], [], [])
    for _ in range(dice.randint(10, 24)):
        _join(dice, draft)
    return draft


def _draft_tight(dice: random.Random) -> Draft:
    """Draw topics whose two workers have different pieces: many loads come into their bounds by exchanges alone."""
    draft = Draft("capped tight", [[number, 5] for number in dice.sample(range(120), dice.randint(100, 120))], [], [])
    for _ in draft.topics:
        _join(dice, draft)
    return draft


def _join(dice: random.Random, draft: Draft) -> None:
    name = urlsafe_b64encode(dice.randbytes(16)).decode().rstrip("=")
    instance = dice.choice(_INSTANCES).format(dice.randint(0, 5)) if dice.random() < 0.6 else None
    rack = dice.choice((*_RACKS, None)) if draft.kind in _RACKED else None
    wanted = None
    if draft.kind in {"unequal", "both", "capped unequal"}:
        wanted = sorted(dice.sample(range(len(draft.topics)), dice.randint(0, len(draft.topics))))
    draft.members.append([name, instance, rack, wanted])


def _case(dice: random.Random, draft: Draft) -> Case:
    racks = None
    if draft.kind in _RACKED:
        racks = [[dice.sample(_RACKS, dice.randint(0, 3)) for _ in range(size)] for _, size in draft.topics]
    return {
        "strategy": dice.choice(("hrw", "shuffled")),
        "epsilon": dice.choice((0.0, 0.05, 0.05, 0.3, 2.0)),
        "seed": dice.choice((0, 0, 7, 4294967295)),
        "topics": [list(topic) for topic in draft.topics],
        "racks": racks,
        "members": [list(member) for member in draft.members],
        "claims": sorted(draft.claims),
        "workers": _workers(dice, draft),
    }


def _workers(dice: random.Random, draft: Draft) -> list[int | None] | None:
    if not draft.kind.startswith("capped"):
        return None
    if draft.kind == "capped tight":
        return [2 for _ in draft.topics]
    most = dice.choice((1, 2, 2, 3))
    return [dice.choice((most, most, dice.randint(1, 4), None)) for _ in draft.topics]


def _change(dice: random.Random, draft: Draft, given: list[list[int]]) -> None:
    """Claim what was given, then let one thing happen to the group."""
    draft.claims = [[m, t, p] for t, mine in enumerate(given) for p, m in enumerate(mine) if m >= 0]
    event = dice.randrange(5)
    if event == 0:
        _join(dice, draft)
    elif event == 1 and len(draft.members) > 1:
        gone = dice.randrange(len(draft.members))
        del draft.members[gone]
        draft.claims = [[m - (m > gone), t, p] for m, t, p in draft.claims if m != gone]
    elif event == 2 and draft.topics:
        dice.choice(draft.topics)[1] += dice.randint(1, 6)
    elif event == 3 and draft.topics:
        for _ in range(dice.randint(1, 8)):
            claim = [dice.randrange(len(draft.members)), dice.randrange(len(draft.topics)), dice.randint(0, 14)]
            if claim not in draft.claims:
                draft.claims.append(claim)


def write_vectors(vectors: dict[str, Any], file: Path) -> None:
    """Write the vectors for programs in other languages."""
    text = json.dumps(vectors, ensure_ascii=False, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    write_vectors(make_vectors(), FILE)
