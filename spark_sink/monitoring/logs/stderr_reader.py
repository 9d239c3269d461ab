"""Formats the lines that a process and its children write to standard error, as a process of its own.

It reads standard input to its end, so it outlives a crash of the process, and its last lines. The first line has the
settings of the log. It writes to standard output, which is the standard error of the process.
"""

import json
import logging
import os
import select
import sys
from collections.abc import Iterator
from typing import Final, TextIO

from spark_sink.monitoring.logs.foreign_lines import JoinedLines, read_line
from spark_sink.monitoring.logs.line_format import FIELDS, LineFormat, is_ours

_STDIN: Final = 0
_READ_BYTES: Final = 65_536
_JOIN_S: Final = 0.2  # longest wait for the next line of a stack trace


def run(stdin: int, out: TextIO) -> None:
    """Read to the end. At the line that the settings name, write what waits, and close the descriptor that they name.

    Args:
        stdin: descriptor to read.
        out: takes the formatted lines; if it takes no more, lines are read and dropped, so that no writer waits.
    """
    lines = _lines(stdin)
    settings = json.loads(next(lines) or "{}")
    form, joined = LineFormat.of(settings), JoinedLines()
    for line in lines:
        asked = line is not None and line == settings.get("end")
        _write(joined.take() if line is None or asked else joined.add(line), form, out)
        if asked:
            os.close(settings["answering"])
    _write(joined.take(), form, out)


def _lines(stdin: int) -> Iterator[str | None]:
    """Yield the lines, and None when none has come for a while; a longer line than a read is cut."""
    rest, waits = b"", False
    while True:
        if waits and not select.select([stdin], [], [], _JOIN_S)[0]:
            waits = False
            yield None
        part = os.read(stdin, _READ_BYTES)
        *whole, rest = (rest + part).split(b"\n")
        if not part or len(rest) >= _READ_BYTES:
            whole, rest = [*whole, rest], b""
        for line in whole:
            waits = True
            yield line.decode("utf-8", errors="replace").rstrip("\r")
        if not part:
            return


def _write(text: str | None, form: LineFormat, out: TextIO) -> None:
    line = read_line(text) if text else None
    if line is None or line.level < (logging.INFO if is_ours(line.logger) else logging.WARNING):
        return
    record = logging.LogRecord(line.logger, line.level, "", 0, "%s", (line.message,), None)
    setattr(record, FIELDS, dict(line.fields))
    try:
        out.write(form.format(record) + "\n")
        out.flush()
    except (OSError, ValueError):  # a full disk, or a reader that has ended
        return


if __name__ == "__main__":
    run(_STDIN, sys.stdout)
