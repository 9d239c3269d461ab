"""A REST catalog that must answer in time; this module imports pyiceberg, which loads slowly.

pyiceberg's own client waits for an answer without end. A catalog that takes a connection and never answers, or a
firewall that forgets the connection, would stop an agent for good, and without a message.
"""

from functools import partial
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager

CONNECT_S, ANSWER_S = 10.0, 60.0


class AnsweringRestCatalog(RestCatalog):
    """A REST catalog whose requests fail if no byte comes for `ANSWER_S`; a commit may have succeeded then."""

    def _create_session(self) -> Any:  # noqa: ANN401 -- a session of requests
        return _bounded(super()._create_session())

    def _create_legacy_oauth2_auth_manager(self, session: Any) -> AuthManager:  # noqa: ANN401 -- a session of requests
        return super()._create_legacy_oauth2_auth_manager(_bounded(session))  # it asks for a token at once


def _bounded(session: Any) -> Any:  # noqa: ANN401 -- a session of requests
    session.request = partial(session.request, timeout=(CONNECT_S, ANSWER_S))
    return session
