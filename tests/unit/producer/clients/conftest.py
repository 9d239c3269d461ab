"""A watcher whose readings happen in the test."""

import pytest

from producer.clients.leader_watcher import LeaderWatcher


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test itself read when the thread would."""
    monkeypatch.setattr(LeaderWatcher, "_start", lambda _: None)
