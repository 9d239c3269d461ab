"""Real processes that are killed and stopped: what a claim promises holds whatever happens to its holder."""

import os
from pathlib import Path

import pytest

from tests.integration.assignors.claims.conftest import Way
from tests.integration.assignors.claims.stress import Scene, judge, run

pytestmark = pytest.mark.integration

SECONDS = float(os.environ.get("AZIMUTH_CLAIMS_SECONDS", "10"))


@pytest.mark.parametrize(
    "way",
    [pytest.param(one, marks=pytest.mark.slow) for one in ("sqlite", "postgresql", "mariadb", "mariadb-two-steps")],
    indirect=True,
)
def test_no_epoch_has_two_holders_and_no_zombie_commits(way: Way, tmp_path: Path) -> None:
    """8 processes, 200 partitions, SIGKILL and SIGSTOP longer than a lease; every late commit is refused."""
    scene = Scene(address=way.server.address, form=way.form, table=way.table, folder=tmp_path)
    found = run(scene, SECONDS, seed=7)
    assert found["kills"], found
    assert found["stops"], found
    for never in (
        "two_holders_of_one_epoch",
        "epochs_seen_with_two_holders",
        "late_commits_accepted",
        "commits_after_a_later_claim",
    ):
        assert found[never] == 0, found
    assert found["zombie_commits_refused"] > 0, found
    # -15: SIGTERM arrived before the process had started its work.
    assert set(found["exit_codes"]) <= {0, -15}, scene.complaints()
    assert found["claims"] > scene.partitions, found


def test_the_judge_finds_a_zombies_commit() -> None:
    """A commit of epoch 1 that went through after the claim of epoch 2: it is higher than what that claim saw."""

    def claim(epoch: int, seen: int | None) -> dict[str, object]:
        return {"what": "claim", "key": ["t", 0], "epoch": epoch, "seen": seen, "waited_s": None}

    def commit(epoch: int, value: int) -> dict[str, object]:
        return {"what": "commit", "key": ["t", 0], "epoch": epoch, "value": value, "late": False}

    fair = judge([[claim(1, None), commit(1, 10)], [claim(2, 10), commit(2, 20)]])
    late = judge([[claim(1, None), commit(1, 10), commit(1, 11)], [claim(2, 10), commit(2, 20)]])
    assert (fair["commits_after_a_later_claim"], late["commits_after_a_later_claim"]) == (0, 1)
    assert judge([[claim(1, None)], [claim(1, None)]])["two_holders_of_one_epoch"] == 1
