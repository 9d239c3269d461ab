"""The shared scenarios, as the checks outside the project read them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assignors import Member, Plan, Topic, plan
from assignors.planner.topics_and_members import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[3] / "data" / "assignor_cases.json").read_text())[
    "cases"
]
STRATEGIES = ["hrw", "shuffled"]


def read_topics(case: dict[str, Any]) -> list[Topic]:
    """Topics of a case, with the racks where it has them."""
    racks = case.get("replica_racks", {})
    return [
        Topic(name, count, racks=[frozenset(r) for r in racks[name]] if name in racks else None)
        for name, count in case["topics"].items()
    ]


def read_members(case: dict[str, Any], key: str = "members") -> list[Member]:
    """Members of a case, with only what their version of the protocol carries."""
    out = []
    for m in case[key]:
        version = m.get("version", 3)
        owned = m.get("owned", {}) if version >= 1 else {}
        out.append(
            Member(
                id=m["id"],
                topics=frozenset(case["topics"]) if m["topics"] == "*" else frozenset(m["topics"]),
                rack=m.get("rack") if version >= 3 else None,
                weight=m.get("weight", 1.0),
                owned=frozenset((t, p) for t, partitions in owned.items() for p in partitions),
                generation=m.get("generation", -1) if version >= 2 else -1,
                instance=m.get("instance"),
            )
        )
    return out


def make_plan(case: dict[str, Any], strategy: str, key: str = "members", *, flip: bool = False, **other: Any) -> Plan:
    """Plan a case under its options."""
    options = case.get("options", {})
    given = (
        {"workers": options.get("workers"), "epsilon": options.get("epsilon", 0)}
        if strategy == "hrw"
        else {"epsilon": 0}
    )
    order = -1 if flip else 1
    return plan(read_topics(case)[::order], read_members(case, key)[::order], strategy=strategy, **(given | other))  # type: ignore[arg-type] # the cases name strategies as text


def pairs(owned: dict[str, list[int]]) -> set[TopicPartition]:
    """Claims as the cases write them, as pairs."""
    return {(t, p) for t, partitions in owned.items() for p in partitions}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_shared_case_holds(case: dict[str, Any], strategy: str) -> None:
    """Each promise of the case is kept by the plan."""
    made = make_plan(case, strategy)
    assert make_plan(case, strategy, flip=True).partitions == made.partitions
    given = [p for mine in made.partitions.values() for p in mine]
    assert len(given) == len(set(given))
    assert set(made.partitions) == {m["id"] for m in case["members"]}
    for member in read_members(case):
        assert all(t in member.topics for t, _ in made.partitions[member.id])
    check(case, made, case["expect"].get("all", {}))
    check(case, made, case["expect"].get(strategy, {}))
    for option in case["expect"]["all"].get("by_option", case["expect"].get("by_option", [])):
        if option["strategy"] == strategy:
            others = {k: option[k] for k in ("workers", "epsilon") if k in option}
            assert max(make_plan(case, strategy, **others).loads.values()) <= option["max_load"]


def check(case: dict[str, Any], made: Plan, expect: dict[str, Any]) -> None:
    """Compare one block of expectations."""
    loads = made.loads
    vector = sorted(loads.values(), reverse=True)
    everything = {p for mine in made.partitions.values() for p in mine}
    kept = valid_claims(case) & {
        p for m in case["members"] for p in pairs(m.get("owned", {})) if p in set(made.partitions[m["id"]])
    }
    per_topic = {
        t: [sum(1 for topic, _ in mine if topic == t) for mine in made.partitions.values()] for t in case["topics"]
    }
    held = {p for mine in made.withheld.values() for p in mine}
    facts: dict[str, Callable[[Any], bool]] = {
        "assigned": lambda n: len(everything) == n,
        "unassigned": lambda u: pairs(u) == set(made.unassigned),
        "listed": lambda names: set(names) <= set(made.partitions),
        "load_vector": lambda v: vector == v,
        "load_vector_runs": lambda runs: vector == [load for load, n in runs for _ in range(n)],
        "max_load": lambda n: max(vector, default=0) <= n,
        "loads": lambda by: all(loads[m] == n for m, n in by.items()),
        "kept": lambda n: len(kept) == n,
        "must_keep": lambda by: all(pairs(o) <= set(made.partitions[m]) for m, o in by.items()),
        "off_rack": lambda n: made.off_rack == n,
        "max_members_per_topic": lambda by: all(sum(c > 0 for c in per_topic[t]) <= n for t, n in by.items()),
        "max_per_topic": lambda by: all(max(per_topic[t]) <= n for t, n in by.items()),
        "cooperative_withheld": lambda o: pairs(o) <= held,
        "withheld_count": lambda n: len(held) == n,
        "round_1_loads": lambda by: all(len(set(made.partitions[m]) - held) == n for m, n in by.items()),
        "round_2_loads": lambda by: second_round(case, made) == by,
        "same_by_instance": lambda _: same_by_instance(case, made),
        "by_option": lambda _: True,
    }
    wrong = [key for key, value in expect.items() if not facts[key](value)]
    assert not wrong, f"{case['id']}: {wrong}"


def valid_claims(case: dict[str, Any]) -> set[TopicPartition]:
    """Claims that no newer generation and no other member of the same one contests."""
    best: dict[TopicPartition, list[int]] = {}
    for member in read_members(case):
        for pair in member.owned:
            best.setdefault(pair, []).append(member.generation)
    return {p for p, generations in best.items() if generations.count(max(generations)) == 1}


def second_round(case: dict[str, Any], made: Plan) -> dict[str, int]:
    """Loads once the first round's answer is owned; nothing kept may move."""
    first = {m: frozenset(mine) - frozenset(made.withheld[m]) for m, mine in made.partitions.items()}
    members = [Member(m.id, m.topics, owned=first[m.id], generation=99) for m in read_members(case)]
    again = plan(read_topics(case), members, epsilon=case.get("options", {}).get("epsilon", 0))
    assert again.moved == 0
    assert not any(again.withheld.values())
    return again.loads


def same_by_instance(case: dict[str, Any], made: Plan) -> bool:
    """Whether each instance holds the same after all came back with new member ids."""
    after = make_plan(case, "hrw", "members_after")
    old = {m["instance"]: made.partitions[m["id"]] for m in case["members"]}
    return old == {m["instance"]: after.partitions[m["id"]] for m in case["members_after"]}
