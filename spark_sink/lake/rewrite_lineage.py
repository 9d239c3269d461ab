"""Which files of a table hold rows twice, by the log alone: the work of an OPTIMIZE that did not know of another. Pure.

delta-rs commits an OPTIMIZE whose files another commit has removed since it read them, so the rows of these files are
in the files that either commit adds. A commit that removes a file which is removed already says so.
"""

import json
from collections.abc import Iterator

_REMEMBERED = 50_000  # removed files, about as many as a week of compactions removes


class RewriteLineage:
    """Follows the removals of a log, commit by commit.

    Attributes:
        doubled: paths of files that may hold rows which other files, or they themselves, hold too.
    """

    def __init__(self) -> None:
        self.doubled: set[str] = set()
        self._rewritten: dict[str, tuple[str, ...]] = {}  # a removed file: the files that were added with its removal

    def note(self, text: str) -> None:
        """Take in the text of the next commit."""
        if '"RESTORE"' in text:  # brings files back, so a second removal of them is no sign of anything
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
