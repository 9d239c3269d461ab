"""Hashing: every process computes the same ranks and owners.

* `murmur3_hash`: MurmurHash3 of each name, a 64-bit mixer for each pair.
* `rendezvous`: `Rendezvous` finds the owner of a key and its ranked successors.
* `rendezvous_tree`: the same for tens of thousands of nodes.
* `endpoint_router`: `Router` picks a serving endpoint for each stream.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.hashing.endpoint_router import Router, RouterSettings
    from assignors.hashing.murmur3_hash import hash64, hash64s, mix64s
    from assignors.hashing.rendezvous import Rendezvous
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "endpoint_router": ["Router", "RouterSettings"],
            "murmur3_hash": ["hash64", "hash64s", "mix64s"],
            "rendezvous": ["Rendezvous"],
        },
    )

__all__ = [
    "Rendezvous",
    "Router",
    "RouterSettings",
    "hash64",
    "hash64s",
    "mix64s",
]
