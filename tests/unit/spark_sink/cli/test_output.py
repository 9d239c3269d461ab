"""Tables of the command line: 80 columns, whole names, and no markup in external names."""

from itertools import pairwise

import pytest

from assignors.claims import Standing
from spark_sink.cli import _output, claims


def _standing(topic: str, owner: str) -> Standing:
    return Standing(
        cluster="production",
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


def test_names_with_brackets_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    """An owner, an agent or a zone may have any name; rich failed on a closing tag without an opening one."""
    table = _output.table("agent", names=["agent"])
    table.add_row("[/x] [red]a[/red] :smile:")
    _output.console().print(table)
    claims._print([_standing("t", "x[/y]")])
    out = capsys.readouterr().out
    assert "[/x] [red]a[/red] :smile:" in out
    assert "x[/y]" in out
