"""`azimuth owner`: the shell's answer is the library's."""

import io
import json
import sys
from pathlib import Path

import pytest

from assignors import Rendezvous
from spark_sink.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    code = 0
    try:
        main(["owner", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_it_answers_as_rendezvous_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nodes from a file, weights, top and seed have the same meaning as in `Rendezvous`."""
    nodes = [f"n{i}" for i in range(20)]
    file = tmp_path / "nodes"
    file.write_text("\n".join(reversed(nodes)) + "\n")
    code, out, _ = run(
        capsys, "a", "b", "--nodes", f"@{file}", "--weight", "n3=5", "--top", "3", "--seed", "7", "--json"
    )
    expected = Rendezvous(nodes, {"n3": 5.0}, seed=7)
    assert (code, json.loads(out)) == (0, {key: expected.top(key, 3) for key in ("a", "b")})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nodes", "a,a"], "more than once"),
        (["--nodes", "@/no/such/file"], "/no/such/file: cannot be read: No such file or directory"),
        (["--nodes", "a", "--weight", "a=heavy"], "need a number"),
        (["--nodes", "a", "--weight", "b=1"], "unknown nodes"),
        (["--nodes", ","], "at least one"),
    ],
)
def test_bad_input_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    """The message names the error, and the exit code is 2."""
    code, _, err = run(capsys, "key", *arguments)
    assert code == 2
    assert said in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


@pytest.mark.parametrize(("data", "said"), [(None, "is closed"), (b"a\xff", "is not UTF-8")])
def test_lines_that_cannot_be_read_are_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: bytes | None, said: str
) -> None:
    """Standard input may be closed, or contain bytes that are not text."""
    stdin = None if data is None else io.TextIOWrapper(io.BytesIO(data))
    monkeypatch.setattr(sys, "stdin", stdin)
    code, out, err = run(capsys, "-", "--nodes", "a")
    assert (code, out) == (2, "")
    assert said in " ".join(err.replace("│", " ").split())
