"""The live page in a real browser: what an agent says is on it, and a picture of it is kept."""

import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_sink.monitoring.live import LiveServer

pytestmark = pytest.mark.integration

KEPT = Path(__file__).parents[5] / "build" / "test" / "live.png"
AGENTS = [{"id": f"agent-{n}", "capacity": 1.0, "zone": f"az-{'abc'[n % 3]}"} for n in range(4)]


def _status() -> dict[str, Any]:
    draw = random.Random(4)
    owners = {f"home/flights.{n:02d}": draw.sample([str(one["id"]) for one in AGENTS], 2) for n in range(60)}
    mine = sorted(topic for topic, who in owners.items() if "agent-1" in who)
    return {
        "agent": AGENTS[1],
        "standing": "member",
        "view": {"version": 7, "members": AGENTS},
        "topics": mine,
        "owners": owners,
        "lanes": 4,
        "consumers": 4,
        "rows": 123_456,
        "commits": 321,
        "rebalances": 5,
        "lag": {topic: draw.randrange(900) for topic in mine},
        "received": {"az-b": 1_000_000_000, "az-c": 3_000_000_000},
        "crossing": {"bytes": 3_000_000_000, "share": 0.75, "cost": 0.03, "cost_per_hour": 0.0123},
        "quarantined": 41,
        "problems": ["other: no broker answers", "<script>document.title = 'broken'</script>"],
        "reads": True,
        "turns": True,
        "unready": "",
        "at": time.time(),
    }


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    """Open a page in headless Chromium with further arguments; returns what it prints."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium (Debian: apt install chromium)")
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]

    def run(url: str, *arguments: str) -> str:
        command = [chromium, *quiet, "--virtual-time-budget=3000", *arguments, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return run


def test_the_page_shows_what_the_agent_says(browse: Callable[..., str]) -> None:
    """Every topic has its row with the agents that read it, and text from elsewhere stays text."""
    status = _status()
    with LiveServer(("127.0.0.1", 0), lambda: status) as live:
        shown = browse(live.url, "--dump-dom")
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        browse(live.url, f"--screenshot={KEPT}", "--window-size=1180,1000")
    assert all(f">{topic}</td>" in shown for topic in status["owners"])
    assert shown.count("seat mine") == len(status["topics"])
    assert shown.count("seat reads") == 2 * len(status["owners"]) - len(status["topics"])
    assert "123,456" in shown
    assert "3.00 GB</b><span>from other zones (75 %)</span>" in shown
    assert "0.0123</b><span>money an hour for them</span>" in shown
    assert "41</b><span>in quarantine</span>" in shown
    assert "<title>agent-1 - azimuth</title>" in shown
    assert KEPT.read_bytes().startswith(b"\x89PNG")


def test_long_names_large_numbers_and_many_problems_leave_room(browse: Callable[..., str]) -> None:
    """One topic with a name as long as Kafka allows must not push its reader's name off the screen."""
    long = f"home/{'x' * 249}"
    status = _status() | {"rows": 123_456_789_012, "problems": [f"problem {n}" for n in range(50)]}
    status |= {"owners": {long: ["agent-1"]}, "unready": "nothing comes into the tables"}
    with LiveServer(("127.0.0.1", 0), lambda: status) as live:
        shown = browse(live.url, "--dump-dom")
    assert f'<td class="name" title="{long}">' in shown
    assert '<b class="name" title="123,456,789,012">123.5B</b>' in shown
    assert "<li>problem 19</li><li>and 30 more</li>" in shown
    assert "member, not ready" in shown
    assert 'class="dot"' in shown
