"""What tests of agents share."""

import uuid

import pytest


@pytest.fixture
def name() -> str:
    """A fleet's name of this test's own."""
    return f"fleet-{uuid.uuid4().hex[:8]}"
