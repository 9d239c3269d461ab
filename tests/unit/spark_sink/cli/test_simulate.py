"""`azimuth simulate` and `azimuth autoscale` from the command line, without a broker."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_sink.cli import simulate
from spark_sink.cli._app import main


def run(*arguments: str) -> int:
    """Run a command; returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_a_simulation_prints_json_and_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Own numbers in, scores out; the page needs no network."""
    trace = tmp_path / "mine.csv"
    rows = [f"{n * 30},t,{p},9000" for n in range(120) for p in range(4)]
    trace.write_text("\n".join(["time_s,topic,partition,records", *rows]))
    page = tmp_path / "report.html"
    assert run("simulate", "--csv", str(trace), "--policy", "capacity", "--json", "--html", str(page)) == 0
    oracle, ours = json.loads(capsys.readouterr().out)
    assert (oracle["policy"], ours["policy"]) == ("oracle", "capacity")
    assert oracle["over_slo"] == 0
    assert "<svg" in page.read_text()
    assert "mathdefault" not in page.read_text()  # SVG text shows no formulas
    assert "http://" not in page.read_text().replace("http://www.w3.org", "")


@pytest.mark.parametrize(("trace", "hot"), [("steady", False), ("hot", True)])
def test_the_columns_are_explained_below_the_table(
    trace: str,
    *,
    hot: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A reader had to look for the meaning of each column in a page, and for the time that workers cannot change."""
    page = tmp_path / "report.html"
    assert run("simulate", "--trace", trace, "--policy", "static", "--days", "0.5", "--html", str(page)) == 0
    said = " ".join(capsys.readouterr().out.split())
    for told in (said, page.read_text()):
        assert "over SLO: part of the time in which some record was older than the objective of 300 s" in told
        assert all(
            f"{name}: " in told for name in ("avoidable", "worker hours", "x oracle", "resizes", "moved", "lost")
        )
        assert ("% of the time no number of workers keeps" in told) is hot


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["simulate", "--trace", "nope"], "nope"),
        (["simulate", "--policy", "nope", "--days", "0.01"], "nope"),
        (["simulate", "--days", "0"], "is not a valid length"),
        (["simulate", "--days", "inf"], "is not a valid length"),
        (["simulate", "--days", "0.1", "--seed", "-1"], "seed=-1"),
        (["simulate", "--days", "0.1", "--slo-s", "inf"], "--slo-s"),
        (["simulate", "--days", "0.1", "--slo-s", "1"], "slo_s=1 is not above rebalance_s"),
        (["simulate", "--csv", "/no/such/file"], "/no/such/file: cannot be read: No such file or directory\n"),
        (["simulate", "--csv", "/"], "/: cannot be read: Is a directory\n"),
        (["autoscale", "--config", "/no/such/file"], "/no/such/file"),
        (["autoscale", "explain", "t", "--journal", "/no/such/file"], "/no/such/file"),
        (["autoscale", "--apply"], "--config"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, no traceback."""
    assert run(*arguments) == 2
    told = capsys.readouterr().err
    assert named in told
    assert "Traceback" not in told


def test_a_simulation_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The usual one takes a minute and more, and was silent for all of it where standard error is no terminal."""
    told: list[str] = []

    @contextmanager
    def heard(text: str) -> Iterator[Callable[[str], None]]:
        told.append(text)
        yield told.append

    monkeypatch.setattr(simulate, "long_step", heard)
    assert run("simulate", "--days", "0.1", "--policy", "static") == 0
    assert told == [
        "simulating: 0 of 2 runs",
        "simulating: 1 of 2 runs, the last one diurnal with oracle",
        "simulating: 2 of 2 runs, the last one diurnal with static",
    ]
    assert "static" in capsys.readouterr().out


def test_explain_prints_the_decisions_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One value, the last decisions whole; an empty one, and exit code 1, where there are none."""
    journal = tmp_path / "scaling.jsonl"
    lines = ["[" * 100_000, *(json.dumps({"topic": "t", "workers": workers}) for workers in (1, 2, 3))]
    journal.write_text("\n".join(lines) + "\n")
    assert run("autoscale", "explain", "t", "--journal", str(journal), "--last", "2", "--json") == 0
    assert [one["workers"] for one in json.loads(capsys.readouterr().out)] == [2, 3]
    assert run("autoscale", "explain", "other", "--journal", str(journal), "--json") == 1
    assert json.loads(capsys.readouterr().out) == []


def test_a_journal_of_another_version_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors are reported in one sentence; bytes that are not text are ignored."""
    journal = tmp_path / "scaling.jsonl"
    journal.write_bytes(b"\xff\xfe\n" + json.dumps({"topic": "t", "workers": 1}).encode() + b"\n")
    assert run("autoscale", "explain", "t", "--journal", str(journal)) == 2
    told = capsys.readouterr().err
    assert "topic 't'" in told
    assert "--json" in told
    assert "Traceback" not in told
