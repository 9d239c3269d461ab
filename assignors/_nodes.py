"""The node a member runs on, read from its identity."""

import re
from collections.abc import Sequence

import numpy as np

from assignors._model import Member
from assignors._problem import I32

_TAIL = re.compile(r"[-_.:/](?:\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")


def node_of(identity: str) -> str:
    """Cut what tells members of one node apart: a UUID or number at the end (`host-1-3f2a...`, `host-1:2`)."""
    return _TAIL.sub("", identity)


def node_numbers(members: Sequence[Member]) -> I32:
    """Number the nodes of the members, shape (M,)."""
    names = [node_of(m.identity) for m in members]
    numbers = {name: i for i, name in enumerate(sorted(set(names)))}
    return np.array([numbers[name] for name in names], dtype=np.int32)
