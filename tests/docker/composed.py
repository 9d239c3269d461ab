"""The compose file, brought up with the images that this machine has or can build."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

ROOT: Final = Path(__file__).parents[2]
_PROJECT: Final = "azimuth-metrics"
_STAND_IN: Final = "azimuth-prometheus"
_API: Final = "http://127.0.0.1:9090/api/v1/query"


class NotHereError(Exception):
    """A requirement of the compose file is not on this machine; the message names it."""


def prometheus_image() -> str:
    """The image that PROMETHEUS_IMAGE names, or Debian's Prometheus with the official image's file and port.

    Raises:
        NotHereError: there is none, and no package can be installed here.
    """
    named = os.environ.get("PROMETHEUS_IMAGE")
    if named:
        return named
    folder = Path(__file__).parent / "prometheus"
    built = _run(["docker", "build", "--quiet", "--tag", _STAND_IN, str(folder)])
    if built.returncode:
        raise NotHereError(f"no image of Prometheus, and none could be built: {_last_line(built)}")
    return _STAND_IN


def compose_command() -> list[str]:
    """Compose as Docker's plugin, or as the command it was before.

    Raises:
        NotHereError: this machine has neither.
    """
    if not _run(["docker", "compose", "version"]).returncode:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    raise NotHereError("neither `docker compose` nor `docker-compose` is installed")


class Composed:
    """All services of the compose file with its profile `metrics`, from `make image`; removed at the context's end.

    Args:
        command: result of `compose_command`.
        prometheus: result of `prometheus_image`.
        lake: folder for the table.
    """

    def __init__(self, command: list[str], prometheus: str, lake: Path) -> None:
        file = str(ROOT / "docker" / "compose.yaml")
        self._command = [*command, "-p", _PROJECT, "-f", file, "--profile", "metrics"]
        owner = f"{os.getuid()}:{os.getgid()}"
        self._settings = {"PROMETHEUS_IMAGE": prometheus, "LAKE": str(lake), "AZIMUTH_USER": owner}

    def __enter__(self) -> Self:
        made = _run(["make", "image"])
        assert made.returncode == 0, made.stderr
        up = self._compose("up", "-d")
        if up.returncode:
            self._compose("down", "-v")
            raise AssertionError(up.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._compose("down", "-v")

    def load(self, flights: int) -> None:
        """Produce the first `flights` of the demo's flights again."""
        servers = ",".join(f"kafka-{number}:19092" for number in (1, 2, 3))
        arguments = ["--bootstrap-servers", servers, "--flights", str(flights)]
        done = self._compose("run", "--rm", "--no-deps", "load", "load", *arguments)
        assert done.returncode == 0, done.stderr

    def logs(self) -> str:
        """The last lines of every service."""
        return self._compose("logs", "--tail=12").stdout

    def _compose(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return _run([*self._command, *arguments], self._settings)


def ask(expression: str) -> list[dict[str, Any]]:
    """Ask Prometheus' HTTP API; an expression that it refuses is an `AssertionError`."""
    address = f"{_API}?{urllib.parse.urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 -- on this machine
            told = json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{expression}: {error.read().decode()}") from error
    assert told["status"] == "success", told
    return list(told["data"]["result"])


def ready(seconds: float) -> None:
    """Wait until Prometheus answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            ask("up")
        except OSError:
            assert time.monotonic() < deadline, f"Prometheus did not answer in {seconds:g} s"
            time.sleep(0.5)
        else:
            return


def _run(command: list[str], settings: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **(settings or {})}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    return next(reversed((done.stderr or done.stdout).strip().splitlines()), f"exit code {done.returncode}")
