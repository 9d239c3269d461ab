"""8 processes x 200 partitions x SIGKILL and SIGSTOP on each database: invariants, and recovery times."""

import os
from pathlib import Path

import pytest

from tests.benchmarks.scaling_report import save
from tests.integration.assignors.claims.conftest import WAYS, Way, databases
from tests.integration.assignors.claims.stress import Scene, run

pytestmark = pytest.mark.benchmark

__all__ = ["databases"]  # a fixture

SECONDS = float(os.environ.get("AZIMUTH_CLAIMS_SECONDS", "60"))
LEASE_S = 2.0
NEVER = (
    "two_holders_of_one_epoch",
    "epochs_seen_with_two_holders",
    "late_commits_accepted",
    "commits_after_a_later_claim",
)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_faults(kind: str, tmp_path: Path) -> None:
    """One fault per 1.5 s, at most two processes at once: SIGKILL and a successor, or SIGSTOP for 1.2 to 2 leases."""
    way = Way(*WAYS[kind])
    scene = Scene(address=way.server.address, form=way.form, table=way.table, folder=tmp_path, lease_s=LEASE_S)
    found = run(scene, SECONDS, seed=1)
    save(
        f"claims_faults_{kind}",
        {
            "what": f"{scene.processes} processes, {scene.partitions} partitions, lease {LEASE_S} s, "
            f"form {way.form.value}; each process claims, commits and disowns a third, over and over; "
            "times are the database's",
            "bars": {"unclaimed_most_s": LEASE_S + 5, **dict.fromkeys(NEVER, 0)},
            "holds": not any(found[name] for name in NEVER) and found["unclaimed_most_s"] <= LEASE_S + 5,
            **found,
        },
    )
    assert not any(found[name] for name in NEVER), found
