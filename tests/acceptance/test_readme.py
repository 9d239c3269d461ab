"""The README is correct: its snippets run unchanged, and its links and targets exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_sink.demo.cluster import Cluster

pytestmark = pytest.mark.acceptance

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
COMMANDS_SHOWN = re.findall(r"^```bash\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
TAILS = {"N14228", "N24211", "N619AA"}


def run(snippet: str, cluster: Cluster, directory: Path) -> str:
    """Run one snippet as a user would, in a separate process and folder, and return its output."""
    source = directory / "snippet.py"
    source.write_text(_here(snippet, cluster, directory))
    return _output([source.name], directory, snippet)


def run_command(line: str, cluster: Cluster, directory: Path) -> str:
    """Run one `azimuth` line as a user would, and return its standard output."""
    words = shlex.split(_here(line, cluster, directory))
    assert words[0] == "azimuth"
    return _output(["-m", "spark_sink", *words[1:]], directory, line)


def _here(text: str, cluster: Cluster, directory: Path) -> str:
    return text.replace("localhost:9092", cluster.bootstrap_servers).replace("/tmp/azimuth", str(directory))  # noqa: S108 - the README's


def _output(arguments: list[str], directory: Path, shown: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, f"{shown}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_snippets_run_one_after_the_other(cluster: Cluster, tmp_path: Path) -> None:
    """Copy, paste, run: topics are created, the producer stays in its zone, consumer and table have every record."""
    topics, producer, consumer, spark = SNIPPETS
    run(topics, cluster, tmp_path)
    assert run(producer, cluster, tmp_path).startswith("0% of the bytes left az-a, for $0.00")
    printed = run(consumer, cluster, tmp_path).splitlines()
    assert {line.split()[-1] for line in printed} == TAILS
    assert len(printed) == len(TAILS)
    run(spark, cluster, tmp_path)
    rows = DeltaTable(str(tmp_path / "flights")).to_pyarrow_table().to_pylist()
    assert sorted(row["key"] for row in rows) == sorted(tail.encode() for tail in TAILS)
    assert {row["topic"] for row in rows} == {"flights.JFK-LAX"}
    (block,) = [one for one in COMMANDS_SHOWN if "azimuth sink" in one]
    lines = [line for line in block.replace("\\\n", " ").splitlines() if line]
    printed = [run_command(line, cluster, tmp_path) for line in lines]
    assert f"{len(TAILS)} rows" in printed[1]  # the agent has added nothing to what the query has written
    assert "0 records behind" in printed[2]
    assert printed[3].split()[-2:] == ["flights.JFK-LAX", str(len(TAILS))]


def test_every_link_leads_to_a_file() -> None:
    """A link to a missing page is worse than no link."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_make_target_named_exists() -> None:
    """README and CONTRIBUTING name no target that the Makefile lacks."""
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    texts = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`(?:[A-Z]+=\S+ )?|^)make ([a-z0-9-]+)\b[^`\n]*(?:`|\s+#)", texts, flags=re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_command_named_exists() -> None:
    """`azimuth <command>` in the README is a command."""
    from spark_sink.cli._app import COMMANDS  # noqa: PLC0415 - typer loads slowly

    named = set(re.findall(r"azimuth ([a-z]+)\b", README))
    assert named <= set(COMMANDS)
