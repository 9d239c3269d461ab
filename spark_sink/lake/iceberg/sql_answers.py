"""A catalog in a database that must answer in time; this module imports pyiceberg, which loads slowly.

pyiceberg's own client waits for an answer without end, as that of a REST catalog does.
"""

from pyiceberg.catalog.sql import SqlCatalog

from assignors.claims import end_silent_connections

ANSWER_S = 60.0


class AnsweringSqlCatalog(SqlCatalog):
    """A catalog whose statements fail after `ANSWER_S` without an answer; a commit may have succeeded then."""

    def _init_catalog(self) -> None:  # the first that uses the engine
        end_silent_connections(self.engine, ANSWER_S)
        super()._init_catalog()
