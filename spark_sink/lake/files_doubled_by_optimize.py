"""Finds files with double rows from the log only: an OPTIMIZE that did not see another one doubles rows. Pure.

delta-rs commits an OPTIMIZE even if another commit has removed its files in the meantime. The rows of these files are
then in the files that each of the two commits adds. The sign is a commit that removes an already removed file.
"""

import json
from collections.abc import Iterator

_REMEMBERED = 50_000  # removed files, about as many as a week of compactions removes


class RewriteLineage:
    """Follows the removals of a log, commit by commit.

    Attributes:
        doubled: whether a commit has added rows again that another commit had moved to other files.
    """

    def __init__(self) -> None:
        self.doubled = False
        self._removed: dict[str, None] = {}

    def note(self, text: str) -> None:
        """Process the text of the next commit."""
        if '"remove"' not in text:
            return
        removed, added = set(_paths(text, "remove")), set(_paths(text, "add"))
        removed -= added  # a file whose deletion vector changes
        self.doubled |= bool(added and removed & self._removed.keys())
        self._removed |= dict.fromkeys(removed)
        while len(self._removed) > _REMEMBERED:
            del self._removed[next(iter(self._removed))]

    def forget(self) -> None:
        """Forget the removals: a RESTORE brings files back, and a second removal of them is normal."""
        self._removed.clear()


def _paths(text: str, kind: str) -> Iterator[str]:
    for line in text.split("\n"):
        if f'"{kind}"' in line and isinstance(action := json.loads(line).get(kind), dict):
            yield action["path"]
