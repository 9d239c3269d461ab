"""Finds the node of a member in its identity."""

import itertools
import re
from collections.abc import Callable, Sequence

import numpy as np

from assignors.errors import NO_PATTERN, NodesError
from assignors.planner.input_arrays import I32

Node = Callable[[str], str] | str | None
"""How to find the node in an identity: a function, a pattern (its first group or whole match), or None: `node_of`."""

_TAIL = re.compile(r"[-_.:/](?:\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.MULTILINE)


def node_of(identity: str) -> str:
    """Remove the suffix that differs between members of one node: a UUID or a number (`host-1-3f2a...`, `host-1:2`)."""
    return _TAIL.sub("", identity)


def node_numbers(identities: Sequence[str], node: Node = None) -> I32:
    """Number the nodes of the members by their identities, shape (M,)."""
    names = _cut_all(identities) if node is None else [_find(node, identity) for identity in identities]
    distinct = dict.fromkeys(names)
    if len(distinct) == len(names):
        return np.arange(len(names), dtype=np.int32)
    numbers = dict(zip(distinct, itertools.count(), strict=False))
    return np.fromiter(map(numbers.__getitem__, names), dtype=np.int32, count=len(names))


def _cut_all(identities: Sequence[str]) -> list[str]:
    """Cut all identities with one search, five times as fast as separate searches."""
    lines = "\n".join(identities)
    if lines.count("\n") >= len(identities):  # an identity with a line break
        return [node_of(identity) for identity in identities]
    cut, times = _TAIL.subn("", lines)
    return cut.split("\n") if times else list(identities)  # texts whose hashes are known already


def _find(node: Callable[[str], str] | str, identity: str) -> str:
    if callable(node):
        return node(identity)
    try:
        found = re.search(node, identity)
    except (*NO_PATTERN, TypeError) as error:
        raise NodesError(f"node={node!r}: neither a function nor a regular expression ({error})") from error
    return identity if found is None else found[1 if found.re.groups else 0] or ""
