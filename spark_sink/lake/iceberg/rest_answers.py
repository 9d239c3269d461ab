"""A REST catalog that must answer in time and as a whole; this module imports pyiceberg, which loads slowly.

pyiceberg's own client waits for an answer without end. A catalog that takes a connection and never answers, or a
firewall that forgets the connection, would stop an agent for good, and without a message. It reports an answer that a
proxy has cut with pydantic's error, which nothing repeats, and which shows parts of the answer: credentials, perhaps.
"""

from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.typedef import IcebergRootModel

CONNECT_S, ANSWER_S = 10.0, 60.0
_WITH_CONTENT = {"GET", "POST"}


class AnsweringRestCatalog(RestCatalog):
    """A REST catalog whose requests fail if no byte comes for `ANSWER_S`, or no JSON; a commit may have succeeded."""

    def _create_session(self) -> Any:  # noqa: ANN401 -- a session of requests
        return _bounded(super()._create_session())

    def _create_legacy_oauth2_auth_manager(self, session: Any) -> AuthManager:  # noqa: ANN401 -- a session of requests
        return super()._create_legacy_oauth2_auth_manager(_bounded(session))  # it asks for a token at once


def _bounded(session: Any) -> Any:  # noqa: ANN401 -- a session of requests
    session.request = partial(session.request, timeout=(CONNECT_S, ANSWER_S))
    session.hooks["response"] = [_refuse_part]
    return session


def _refuse_part(answer: Any, **_: object) -> None:  # noqa: ANN401 -- a response of requests
    """Refuse an answer that is not JSON, as an error of the connection.

    Raises:
        OSError: it is not.
    """
    if answer.status_code != HTTPStatus.OK or answer.request.method not in _WITH_CONTENT:
        return
    try:
        IcebergRootModel[Any].model_validate_json(answer.content)
    except ValueError:
        place = urlsplit(answer.url)  # it may also have a password, or a query
        raise OSError(
            f"{place.hostname}{place.path}: the {len(answer.content)} bytes of the answer are not whole JSON. Was the "
            "answer cut, or is this the page of another server?"
        ) from None
