"""Containers for the tests of this folder, used by `make docker-test` and skipped in all other runs."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def zones() -> Iterator[object]:
    """Three brokers in containers; without an engine the run ends with one sentence."""
    if not os.environ.get("AZIMUTH_DOCKER_TEST"):
        pytest.skip("needs a Docker engine: run `make docker-test`")
    import docker  # noqa: PLC0415 - its import is not for free, and not needed to skip

    from tests.docker.zones import Zones  # noqa: PLC0415 - its import is not for free, and not needed to skip

    try:
        docker.from_env().ping()
    except docker.errors.DockerException as error:
        pytest.exit(f"no Docker engine answers ({error}): start one, or set DOCKER_HOST", returncode=2)
    with Zones() as started:
        yield started
