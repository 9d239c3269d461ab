"""A schema registry that takes connections and does not answer."""

import socket
from typing import Any

import pytest

from spark_sink.errors import FetchError
from spark_sink.formats import Registry, schema_registry


@pytest.mark.parametrize("given", [{}, {"timeout": "0.05"}], ids=str)
def test_a_registry_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> None:
    """The client's own default is to wait for ever, at the start of a query as well as in its tasks."""
    monkeypatch.setattr(schema_registry, "_TIMEOUT_S", 600.0 if given else 0.05)
    monkeypatch.setattr(schema_registry, "_PAUSE_S", 0.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        config: dict[str, Any] = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}", "max.retries": 0}
        with pytest.raises(FetchError, match=r"schema registry http://.*: 'flights' could not be read: timed out"):
            Registry({**config, **given}).latest("flights")
