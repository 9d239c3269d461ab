"""`azimuth claims` with invalid arguments: one sentence, exit code 2, and no new file."""

from pathlib import Path

import pytest

from spark_sink.cli import main

SERVERS = ("--bootstrap-servers", "localhost:9")
RUN = ("run", "--group", "n", "--table", "t", "--database", "sqlite:///{tmp}/c.db", *SERVERS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status", "--database", "sqlite:///{tmp}/none.db"), "none.db: there is no such file"),
        (("status", "--database", "sqlite:///{tmp}/no/folder.db"), "folder.db: there is no such file"),
        (("status", "--database", "sqlite:///{tmp}/none.db", "--claims-table", "a b"), "table 'a b'"),
        (("status", "--database", "sqlite:///{tmp}/text"), "file is not a database"),
        (("status", "--database", "sqlite://"), "name a file"),
        (("status", "--database", ""), "is not the address of a database"),
        *(
            ((*RUN, "--subscribe", "a", flag, value), flag.removeprefix("--").replace("-", "_") + "=")
            for flag in ("--lease-s", "--partitions", "--records", "--worth-records", "--longest-s")
            for value in ("-1", "0", "nan", "inf", "1e-9", "99999999999999999999999")
            # These are numbers of seconds and records that mean something, or fail as no whole number at the flag.
            if (flag, value) not in {("--worth-records", "0"), ("--longest-s", "0"), ("--longest-s", "1e-9")}
            if (flag, value) != ("--worth-records", "1e-9")
            if flag not in {"--partitions", "--records"} or value.lstrip("-").isdigit()
        ),
        ((*RUN, "--subscribe", "a", "--partitions", "nan"), "--partitions"),
        ((*RUN, "--subscribe", "a", "--claims-table", ""), "table ''"),
        ((*RUN, "--subscribe", "a", "--group", ""), "--group is empty"),
        ((*RUN, "--subscribe", "a", "--table", ""), "--table is empty"),
        ((*RUN, "--subscribe", "a", "--database", "nonsense"), "'nonsense' is not the address of a database"),
        ((*RUN, "--subscribe", "a", "--owner", "o\0"), "owner="),
        ((*RUN, "--subscribe", "a", "--owner", ""), "--owner is empty"),
        ((*RUN, "--subscribe", "a", "--owner", " "), "--owner is empty"),
        ((*RUN, "--subscribe", "a", "--workers-topic", ""), "--workers-topic is empty"),
        ((*RUN, "--subscribe", "a", "--workers-topic", "w", "--workers-redis", ""), "--workers-redis is empty"),
        ((*RUN, "--subscribe-pattern", ""), "--subscribe-pattern is empty"),
        ((*RUN, "--subscribe-pattern", "("), "pattern '('"),
        (RUN, "give topics, a pattern, or both"),
        ((*RUN, "--subscribe", "a", "--kafka", "no.such=1"), "no.such"),
        ((*RUN, "--subscribe", "a", "--value-format", "csv"), "flag --value-format: 'csv', need one of"),
        (
            (*RUN, "--subscribe", "a", "--value-format", "json"),
            "needs the flag --value-schema with",
        ),
        ((*RUN, "--subscribe", "a", "--value-format", "json", "--value-schema", "x"), "'x'"),
        ((*RUN, "--subscribe", "a", "--value-format", "avro"), "needs the flag --schema-registry url=ADDRESS"),
        (
            (*RUN, "--subscribe", "a,b", "--value-format", "avro", "--schema-registry", "url=http://r"),
            "flag --value-subject",
        ),
        ((*RUN, "--subscribe", "a", "--unknown-fields", "rescue"), "flag --unknown-fields has no effect without"),
        ((*RUN, "--subscribe", "a", "--partition-by", "day"), "'day'"),
        ((*RUN, "--subscribe", "a", "--storage", "AWS_REGON=eu"), "did you mean 'AWS_REGION'?"),
        (
            (*RUN, "--subscribe", "a", "--table-format", "iceberg", "--table", "c.n.t", "--catalog", "warehose=/l"),
            "did you mean 'warehouse'?",
        ),
        ((*RUN, "--subscribe", "a", "--ops-log", "t"), "ops_log 't' is at, above or below an address of the tables"),
        ((*RUN, "--subscribe", "a", "--ops-log", "o", "--ops-log-s", "0"), "ops_log_s=0"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_wrong_invocation_is_one_sentence_and_two(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No broker is waited for to say it."""
    (tmp_path / "text").write_text("this is no database, it is some text of more than a hundred bytes" * 9)
    with pytest.raises(SystemExit) as ended:
        main(["claims", *(one.format(tmp=tmp_path) for one in arguments)])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert says in " ".join(said.err.replace("│", " ").split())
    assert "Traceback" not in said.err
    assert [file.name for file in tmp_path.iterdir()] == ["text"]


@pytest.mark.parametrize("from_file", [True, False], ids=["file", "environment"])
def test_the_database_comes_from_a_file_or_the_environment(
    *, from_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every user of a machine can read its command lines, and the address has a password."""
    address = f"sqlite:///{tmp_path}/none.db"
    file = tmp_path / "database"
    file.write_text(f"{address}\n")
    monkeypatch.setenv("AZIMUTH_CLAIMS_DATABASE", "sqlite:///elsewhere.db" if from_file else address)
    with pytest.raises(SystemExit) as ended:
        main(["claims", "status", *(["--database", f"@{file}"] if from_file else [])])
    assert ended.value.code == 2
    assert f"{tmp_path}/none.db: there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize(("content", "says"), [(None, "cannot be read"), ("\n", "is empty"), ("\xff", "no UTF-8")])
def test_a_file_without_an_address_is_said(
    content: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the file's name, and nothing of its content."""
    file = tmp_path / "database"
    if content is not None:
        file.write_bytes(content.encode("latin-1"))
    with pytest.raises(SystemExit) as ended:
        main(["claims", "status", "--database", f"@{file}"])
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert ended.value.code == 2
    assert says in said
