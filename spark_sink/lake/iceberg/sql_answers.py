"""A catalog in a database that must answer in time; this module imports pyiceberg, which loads slowly.

pyiceberg's own client waits for an answer without end, as that of a REST catalog does.
"""

import os
import weakref

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import Engine

from assignors.claims import end_silent_connections

ANSWER_S = 60.0


class AnsweringSqlCatalog(SqlCatalog):
    """A catalog whose statements fail after `ANSWER_S` without an answer; a commit may have succeeded then.

    Its connections are closed when nothing refers to it any more.
    """

    def _init_catalog(self) -> None:  # the first that uses the engine
        end_silent_connections(self.engine, ANSWER_S)
        weakref.finalize(self, _close, self.engine, os.getpid()).atexit = False
        super()._init_catalog()


def _close(engine: Engine, process: int) -> None:
    if os.getpid() == process:  # a forked child would end the connections of its parent
        engine.dispose()
