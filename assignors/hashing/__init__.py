"""Hashing: every process computes the same ranks and owners.

* `hash`: MurmurHash3 of each name, a 64-bit mixer for each pair.
* `rendezvous`: `Rendezvous` finds the owner of a key and its ranked successors.
* `rendezvous_tree`: the same for tens of thousands of nodes.
* `endpoint_router`: `Router` picks a serving endpoint for each stream.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.hashing.endpoint_router import Router, RouterSettings
    from assignors.hashing.hash import hash64, hash64s, mix64s
    from assignors.hashing.rendezvous import Rendezvous

__all__ = [
    "Rendezvous",
    "Router",
    "RouterSettings",
    "hash64",
    "hash64s",
    "mix64s",
]

_MODULES = {
    "Rendezvous": "rendezvous",
    "Router": "endpoint_router",
    "RouterSettings": "endpoint_router",
    "hash64": "hash",
    "hash64s": "hash",
    "mix64s": "hash",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
