"""Workers per topic from a function or a file, which can change at run time."""

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from assignors.errors import WorkersError
from assignors.planner.worker_caps import Workers, check_workers

log = logging.getLogger(__name__)

WorkersSetting = Workers | Callable[[], Workers] | Path | str
"""A value, a function that returns one, or the path of a JSON file with a number, null, or an object."""


class WorkersSource:
    """The last valid value of a source.

    Contract:
    * The first read raises, so that an invalid setting fails at its creation.
    * After a later failure the last valid value stays, and the failure is logged once until the source is valid again:
      a group never stops because a file is being written.
    """

    def __init__(self, source: WorkersSetting) -> None:
        """Read for the first time.

        Raises:
            WorkersError: a number below 1 or not whole, an invalid pattern, a file that cannot be read, or a function
                that raises.
        """
        self._source = Path(source) if isinstance(source, str) else source
        self._stamp: tuple[int, int] | None = None
        self._failed = False
        self.value: Workers = None
        self._read()

    @property
    def changes(self) -> bool:
        """Return whether the value can change."""
        return isinstance(self._source, Path) or callable(self._source)

    def refresh(self) -> bool:
        """Read again.

        Returns:
            Whether the value has changed.
        """
        before = self.value
        try:
            self._read()
        except Exception as error:  # noqa: BLE001 - a user's function may raise any error; the last valid value stays
            if not self._failed:
                log.warning("workers stay at %r, the source failed: %s", before, error)
            self._failed = True
        else:
            self._failed = False
        return self.value != before

    def _read(self) -> None:
        if isinstance(self._source, Path):
            self._read_file(self._source)
            return
        value = self._call(self._source) if callable(self._source) else self._source
        check_workers(value)
        self.value = dict(value) if isinstance(value, Mapping) else value

    @staticmethod
    def _call(function: Callable[[], Workers]) -> Workers:
        try:
            return function()
        except Exception as error:
            raise WorkersError(f"workers: the function {function!r} failed: {error!r}") from error

    def _read_file(self, path: Path) -> None:
        try:
            status = os.stat(path)  # noqa: PTH116 - one call for time and size
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._stamp and not self._failed:
                return
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise WorkersError(f"workers file {str(path)!r}: {why}; need JSON, a number or an object") from error
        check_workers(value)
        self.value, self._stamp = value, stamp
