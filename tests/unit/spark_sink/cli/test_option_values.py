"""Values of options: `NAME=VALUE` texts, files of them that keep secrets out of process arguments, and workers."""

from pathlib import Path

import pytest
import typer

from spark_sink.cli._option_values import pairs, workers


def test_pairs_come_from_the_line_and_from_files(tmp_path: Path) -> None:
    """Later ones win, values may have an equals sign in them, and files comments, as Kafka's tools take them."""
    file = tmp_path / "client.properties"
    file.write_text("# of the cluster\n\nsasl.password = a=b \nclient.id=file\n")
    assert pairs([f"@{file}", "client.id=line"], "--kafka") == {"sasl.password": "a=b", "client.id": "line"}
    assert pairs(None, "--kafka") == {}


@pytest.mark.parametrize(
    "text", ["sasl.password:canary", "sasl.password canary", "=canary", "@{tmp}/lines", "@{tmp}/no"]
)
def test_what_is_none_is_refused_without_its_value(text: str, tmp_path: Path) -> None:
    """It may be a password."""
    (tmp_path / "lines").write_text("client.id=x\nsasl.password canary\n")
    with pytest.raises(typer.BadParameter, match=r"need NAME=VALUE|cannot be read: No such file") as raised:
        pairs([text.format(tmp=tmp_path)], "--kafka")
    assert "canary" not in str(raised.value)


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
