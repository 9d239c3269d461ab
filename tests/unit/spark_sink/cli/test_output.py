"""Tables of the command line: 80 columns, whole names, and no markup in external names."""

from itertools import pairwise

import pytest

from assignors.claims import Standing
from spark_sink.cli import _output, claims


def _standing(topic: str, owner: str, cluster: str = "production") -> Standing:
    return Standing(
        cluster=cluster,
        topic=topic,
        partition=17,
        owner=owner,
        held=True,
        lease_s=28.4,
        free_s=0.0,
        due_s=3.2,
        picked_s=12.6,
        epoch=124,
        committed_offset=1_234_567_890,
        volume=1234.5,
    )


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_who_holds_what_fits_80_columns_with_every_name_whole(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten columns did not fit, and truncated names looked equal; a narrower terminal wraps lines itself."""
    monkeypatch.setenv("COLUMNS", columns)
    topic, owner = "flights.departures.JFK-LAX.v2", "ingest-host-17-31337"
    claims._print([_standing(topic, owner)])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= max(80, int(columns))
    assert "…" not in "".join(lines)
    places = [lines[0].index(heading) for heading in ("partition", "owner", "lease")]
    cells = ["".join(line[a:b].strip() for line in lines[1:-1]) for a, b in pairwise(places)]
    assert cells == [f"{topic}/17", owner]
    assert "1234567890" in lines[1]


def test_one_cluster_takes_no_column(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka's ids have 22 characters: beside such a column short names of topics took two lines each."""
    monkeypatch.setenv("COLUMNS", "80")
    cluster = "sN8pbylNQg-8J_5g05F6_g"
    claims._print([_standing("machines.m00", "job-1", cluster)] * 2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["partition", *["machines.m00/17"] * 2, "cluster"]
    assert lines[-1].startswith(f"cluster {cluster}: 2 partitions")


def test_several_clusters_take_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    """One table of claims may serve several clusters, whose topics may have the same names."""
    claims._print([_standing("t", "job-1", "east"), _standing("t", "job-1", "west")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["cluster", "east", "west", "2"]


def test_names_with_brackets_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    """An owner, an agent or a zone may have any name; rich failed on a closing tag without an opening one."""
    table = _output.table("agent", names=["agent"])
    table.add_row("[/x] [red]a[/red] :smile:")
    _output.console().print(table)
    claims._print([_standing("t", "x[/y]")])
    out = capsys.readouterr().out
    assert "[/x] [red]a[/red] :smile:" in out
    assert "x[/y]" in out
