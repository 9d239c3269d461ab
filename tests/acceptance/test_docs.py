"""The documentation is correct: its Python runs unchanged, its commands and flags exist, and the site builds."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from typer.main import get_command

from spark_sink.cli import _app
from spark_sink.demo.cluster import Cluster, find_assignor_jar
from spark_sink.demo.topics import create_topics, delete_topics
from spark_sink.errors import ClusterError

pytestmark = pytest.mark.acceptance

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
README = ROOT / "README.md"


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a page in one language, including those within lists."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(rf"^ *```{language}\b[^\n]*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(one) for one in found]


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
QUICK = {"migration", "quarantine", "scaling"}
"""Pages whose blocks start neither Spark nor a database; the others run in `make test-slow`."""


@pytest.fixture(scope="module")
def documented(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, with the topics that pages name while they are tested."""
    names = {"flights.JFK-LAX", "flights.EWR-SEA"}
    create_topics(cluster.bootstrap_servers, names, partitions=6, replicas=1, config={})
    yield cluster
    delete_topics(cluster.bootstrap_servers, names)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    deadline = time.monotonic() + 60
    while names & set(admin.list_topics(timeout=20).topics):
        assert time.monotonic() < deadline, "the topics were not deleted"
        time.sleep(0.2)


@pytest.fixture
def address(page: Path, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of the page's cluster: for the broker's assignors one that has them."""
    if page.stem != "broker":
        yield request.getfixturevalue("documented").bootstrap_servers
        return
    try:
        jar = find_assignor_jar()
    except ClusterError as error:
        pytest.skip(str(error))
    cluster = Cluster.up(tmp_path / "cluster", racks=["az-a"], tied=True, assignor_jar=jar)
    create_topics(cluster.bootstrap_servers, {"flights.JFK-LAX"}, partitions=6, replicas=1, config={})
    yield cluster.bootstrap_servers
    cluster.down()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page.stem in QUICK else pytest.mark.slow, id=page.stem) for page in WITH_PYTHON],
)
def test_python_of_a_page_runs(address: str, page: Path, tmp_path: Path) -> None:
    """Run every block in a separate process, from top to bottom, in one folder, as a reader would paste it."""
    for number, block in enumerate(blocks(page, "python")):
        source = tmp_path / f"snippet_{number}.py"
        text = block.replace("localhost:9092", address)
        source.write_text(text.replace("/tmp/azimuth", str(tmp_path)))  # noqa: S108 - the pages' own
        done = subprocess.run(
            [sys.executable, source.name],
            cwd=tmp_path,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{page.name}, block {number}:\n{block}\n{done.stderr[-2000:]}"


def commands() -> list[tuple[str, list[str]]]:
    """Every `azimuth ...` line of the pages, with the page's name."""
    found = []
    for page in [README, *PAGES]:
        for block in blocks(page, "(?:bash|console)"):
            found += [(page.name, words) for words in words_of(block)]
    return found


def words_of(block: str) -> list[list[str]]:
    """Return the words after `azimuth` in each of a block's lines, with or without a prompt before it."""
    lines = (line.split("#")[0].strip().removeprefix("$ ") for line in block.replace("\\\n", " ").splitlines())
    return [shlex.split(line)[1:] for line in lines if line.startswith("azimuth ")]


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_every_command_of_a_page_is_checked(page: Path) -> None:
    """A command in a block of another language would not be tested."""
    fenced = re.findall(r"^ *```(\S*)[^\n]*\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert {language for language, block in fenced if words_of(block)} <= {"bash", "console"}


@pytest.mark.slow
def test_the_jobs_of_the_page_on_claims_ingest(documented: Cluster, tmp_path: Path) -> None:
    """As a reader would type them, except the addresses: one ingests records, the other shows the owners."""
    [block] = blocks(ROOT / "docs" / "claims.md", "console")
    for there, here in {
        "s3://lake": str(tmp_path),
        "postgresql://ingest@db/kafka": f"sqlite:///{tmp_path}/claims.db",
        "kafka:9092": documented.bootstrap_servers,
    }.items():
        assert there in block
        block = block.replace(there, here)
    job, status = ([sys.executable, "-m", "spark_sink", *words] for words in words_of(block))
    table = str(tmp_path / "flights")
    producer = Producer({"bootstrap.servers": documented.bootstrap_servers})
    producer.produce("flights.JFK-LAX", "a flight")
    assert producer.flush(30) == 0
    with subprocess.Popen(job, stderr=subprocess.PIPE, text=True) as running:
        try:
            deadline = time.monotonic() + 120
            while not (DeltaTable.is_deltatable(table) and DeltaTable(table).count() > 0):
                assert running.poll() is None, running.communicate()[1]
                assert time.monotonic() < deadline, "no row came"
                time.sleep(0.2)
            said = subprocess.run(status, capture_output=True, text=True, timeout=60, check=True).stdout
            running.terminate()
            assert running.wait(60) == 0
        finally:
            running.kill()
    assert "12 partitions" in said


@pytest.mark.parametrize(("page", "words"), commands(), ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_a_command_of_a_page_exists_with_its_flags(page: str, words: list[str]) -> None:
    """The command exists, and has every flag."""
    for name in _app.COMMANDS:
        if not _app.app.registered_commands or name not in _registered():
            __import__(f"spark_sink.cli.{name}", fromlist=["register"]).register(_app.app)
    command = get_command(_app.app)
    assert isinstance(command, typer.core.TyperGroup)
    found: object = command
    rest = list(words)
    while isinstance(found, typer.core.TyperGroup):
        assert rest, f"{page}: {words} ends at a group"
        if rest[0].startswith("-") and found.invoke_without_command:
            break
        found = found.commands.get(name := rest.pop(0))
        assert found is not None, f"{page}: no command {name!r}"
    flags = {option for one in getattr(found, "params", ()) for option in one.opts}
    assert {word.split("=")[0] for word in rest if word.startswith("--")} <= flags


def _registered() -> set[str]:
    own = {str(one.name) for one in _app.app.registered_commands}
    return own | {str(one.name) for one in _app.app.registered_groups}


def _build(site: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Build the site as `make docs` does: a quiet build does not count warnings, and would pass with them."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site), *arguments],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """All links, names of the reference and pages of the navigation exist."""
    done = _build(tmp_path / "site")
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "site" / "index.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("link", ["no-such-page.md", "scaling.md#no-such-heading"])
def test_a_link_into_nothing_fails_the_build(tmp_path: Path, link: str) -> None:
    """After a rename of a page or a heading, links to it must change, too."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write(f"\n[there]({link})\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\n", encoding="utf-8")
    done = _build(tmp_path / "site", "--config-file", str(config))
    assert (done.returncode, link.rsplit("#", maxsplit=1)[-1] in done.stderr) == (1, True), done.stderr[-3000:]


def test_make_docs_counts_warnings() -> None:
    """A quiet build neither prints a warning nor fails on it."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\ndocs:")[1].split("\n\n")[0]
    assert "mkdocs build" in recipe
    assert "--quiet" not in recipe
