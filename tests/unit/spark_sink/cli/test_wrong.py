"""Wrong invocations of `azimuth`: one sentence, exit code 2, no traceback, and at once."""

from pathlib import Path

import pytest

from spark_sink.cli import main

NOWHERE = ("--bootstrap-servers", "localhost:9", "--group", "g")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("lag", *NOWHERE, "--kafka", "no.such=1"), "no.such"),
        (("lag", *NOWHERE, "--table", "{tmp}/none"), "it holds no position of group 'g'"),
        (("plan", *NOWHERE, "--workers", "*=many"), "need a whole number"),
        (("simulate", "--policy", "none"), "policy 'none': known are"),
        (("simulate", "--slo", "0"), "need a finite number above 0"),
        (("simulate", "--slo-s", "0"), "need a finite number above 0"),
        (("simulate", "--worker-rate", "0"), "need a finite number above 0"),
        (("simulate", "--trace", "all", "--html", "{tmp}/no/report.html"), "report.html: the report cannot be written"),
        (("simulate", "--trace", "all", "--html", "{tmp}"), "the report cannot be written: Is a directory"),
        (("load", "--bootstrap-servers", "localhost:9", "--kafka", "no.such=1"), "no.such"),
        (("load", "--bootstrap-servers", "localhost:9", "--kafka", "nonsense"), "need NAME=VALUE"),
        (("cluster", "up", "--dir", "{tmp}/c", "--zones", ""), "need at least one"),
        (("cluster", "up", "--dir", "{tmp}/file/c"), "cannot be made"),
        (("cluster", "up", "--dir", "{tmp}/a,b"), "has a comma"),
        (("cluster", "status", "--dir", "{tmp}/file"), "is no folder of a cluster (Not a directory)"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_wrong_invocation_is_one_sentence_and_two(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked of a broker, computed or started before."""
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main([one.format(tmp=tmp_path) for one in arguments])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert says in " ".join(said.err.replace("│", " ").split())
