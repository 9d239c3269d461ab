"""`NAME=VALUE` texts, and files of them that keep secrets out of process arguments."""

from pathlib import Path

import pytest
import typer

from spark_sink.cli._option_values import pairs


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
