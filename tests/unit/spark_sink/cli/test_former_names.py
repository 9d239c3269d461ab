"""An option has the same name in all commands; former names are accepted, but not in any help text."""

import pytest
import typer
from typer.testing import CliRunner

from spark_sink.cli._former_names import formerly
from spark_sink.cli._option_values import workers


def _app() -> typer.Typer:
    app = typer.Typer()

    def command(new_name: str = "") -> None:
        typer.echo(new_name)

    app.command(cls=formerly(new_name="old-name"))(command)
    return app


@pytest.mark.parametrize("given", [["--old-name", "x"], ["--old-name=x"], ["--new-name", "x"]])
def test_old_and_new_spelling_are_the_same_option(given: list[str]) -> None:
    """Scripts from the old documentation continue to work."""
    assert CliRunner().invoke(_app(), given).output == "x\n"


def test_what_is_no_option_is_left_as_it_is() -> None:
    """A value of that name may be meant behind `--`."""
    app = typer.Typer()

    def command(words: list[str], new: str = "") -> None:
        typer.echo(f"{words} {new}")

    app.command(cls=formerly(new="old"))(command)
    assert CliRunner().invoke(app, ["--old", "x", "--", "--old", "y"]).output == "['--old', 'y'] x\n"


def test_help_knows_the_new_spelling_only() -> None:
    """Two names for one thing would look like two things."""
    told = CliRunner().invoke(_app(), ["--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "--new-name" in told
    assert "--old-name" not in told


@pytest.mark.parametrize(
    ("texts", "means"),
    [
        (None, None),
        (["3"], 3),
        (["*=2", "orders=5"], {"*": 2, "orders": 5}),
        (['{"a=b": 2}'], {"a=b": 2}),
    ],
)
def test_workers_are_a_number_or_topics_with_one_each(
    texts: list[str] | None, means: int | dict[str, int] | None
) -> None:
    """The same flag reads the same way in every command."""
    assert workers(texts) == means


@pytest.mark.parametrize("texts", [["many"], ["{a"], ["a=1.5"], ["2", "3"], ['{"a": null}'], ["=2"], ["\u00b2"]])
def test_workers_that_are_no_numbers_are_refused(texts: list[str]) -> None:
    """In one sentence, before anything is asked of a broker."""
    with pytest.raises(typer.BadParameter):
        workers(texts)
