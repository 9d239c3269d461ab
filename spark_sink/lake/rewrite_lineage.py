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
        doubled: paths of files that may have rows that another file, or the same file, has, too.
    """

    def __init__(self) -> None:
        self.doubled: set[str] = set()
        self._rewritten: dict[str, tuple[str, ...]] = {}  # removed file -> the files that the same commit added

    def note(self, text: str) -> None:
        """Process the text of the next commit."""
        if '"RESTORE"' in text:  # restores files, so a second removal of them is normal
            self._rewritten.clear()
            return
        if '"remove"' not in text:
            return
        removed, added = set(_paths(text, "remove")), set(_paths(text, "add"))
        removed -= added  # a file whose deletion vector changes
        again = removed & self._rewritten.keys()
        if again and added:
            self.doubled |= added.union(*(self._rewritten[path] for path in again))
        if self.doubled & removed:
            self.doubled |= added
        self.doubled -= removed
        self._rewritten |= dict.fromkeys(removed, tuple(added))
        while len(self._rewritten) > _REMEMBERED:
            del self._rewritten[next(iter(self._rewritten))]


def _paths(text: str, kind: str) -> Iterator[str]:
    for line in text.splitlines():
        if f'"{kind}"' in line and isinstance(action := json.loads(line).get(kind), dict):
            yield action["path"]
