"""What a merge by hand may leave behind where no tool sees it: in docstrings and pages."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("assignors", "broker/src", "deploy", "docker", "docs", "producer", "requirements", "spark_sink", "tests")
KINDS = {".java", ".md", ".py", ".pyx", ".toml", ".txt", ".yaml", ".yml"}
MARKS = ("<" * 7 + " ", "=" * 7 + "\n", ">" * 7 + " ")


def test_no_file_has_the_marks_of_a_merge() -> None:
    """A docstring with both sides of a conflict is valid Python."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in KINDS]
    marked = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in [*files, *ROOT.glob("*.md"), *ROOT.glob("*.toml")]
        for number, line in enumerate(file.read_text().splitlines(keepends=True), 1)
        if line.startswith(MARKS)
    ]
    assert marked == []
    assert len(files) > 1_000
