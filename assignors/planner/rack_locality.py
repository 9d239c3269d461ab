"""Determines which partitions are local to which members."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from assignors.planner.input_arrays import I32, Bools, Problem
from assignors.planner.topics_and_members import Topic

RackBy = Literal["replicas", "leader"]
RACK_BY: Final = ("replicas", "leader")


@dataclass(frozen=True, slots=True)
class Racks:
    """Rack sets of the partitions, and which members are outside them.

    Attributes:
        kind_of: number of each partition's rack set, shape (P,).
        off: whether a member's known rack is not in a known set, shape (K, M). Unknown racks are not a mismatch.
    """

    kind_of: I32
    off: Bools

    def count_off(self, owner: I32) -> int:
        """Count the partitions whose owner is in none of their racks."""
        if not self.off.any():
            return 0
        given = owner >= 0
        return int(self.off[self.kind_of[given], owner[given]].sum())


def read_racks(problem: Problem, rack_by: RackBy) -> Racks:
    """Compare members' racks with those of the replicas (KIP-881), or only of the leader."""
    kinds: dict[frozenset[str], int] = {frozenset(): 0}
    kind_of = np.zeros(problem.partitions, dtype=np.int32)
    if all(m.rack is None for m in problem.members):
        return Racks(kind_of, np.zeros((1, len(problem.members)), dtype=bool))
    for i, topic in enumerate(problem.topics):
        if (topic.racks if rack_by == "replicas" else topic.leaders) is not None:
            of_topic = [kinds.setdefault(racks, len(kinds)) for racks in _rack_sets(topic, rack_by)]
            kind_of[problem.first[i] : problem.first[i + 1]] = of_topic
    off = np.array([[bool(k) and m.rack is not None and m.rack not in k for m in problem.members] for k in kinds])
    return Racks(kind_of, off)


def _rack_sets(topic: Topic, rack_by: RackBy) -> Iterator[frozenset[str]]:
    if rack_by == "leader":
        leaders: Sequence[str | None] = topic.leaders or ()
        return (frozenset() if rack is None else frozenset({rack}) for rack in leaders)
    return (frozenset(racks or ()) for racks in topic.racks or ())
