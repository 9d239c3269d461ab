"""The last sentence of a command has no secrets."""

from pathlib import Path

import pytest

from spark_sink.cli import _error_sentences, main
from spark_sink.cli._option_values import pairs

SECRET = "hunter2-and-more"  # noqa: S105 -- it is none


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test knows only its own secrets."""
    monkeypatch.setattr(_error_sentences, "_known", set())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kafka", f"sasl.password={SECRET}"],
        [f"--kafka=sasl.password={SECRET}"],
        ["--storage", f"AWS_SECRET_ACCESS_KEY={SECRET}"],
        ["--database", f"postgresql://user:{SECRET}@host/db"],
    ],
    ids=["property", "joined", "storage", "address"],
)
def test_secrets_of_the_arguments_are_hidden(arguments: list[str]) -> None:
    """A library may repeat any of its settings in an error."""
    assert _error_sentences.masked(f"no: {SECRET}!", ["lag", *arguments]) == "no: ***!"


def test_secrets_of_a_file_of_properties_are_hidden(tmp_path: Path) -> None:
    """They are in no argument."""
    (tmp_path / "kafka").write_text(f"sasl.password={SECRET}\n")
    pairs([f"@{tmp_path}/kafka"], "--kafka")
    assert _error_sentences.masked(f"no: {SECRET}!") == "no: ***!"


def test_a_word_that_is_no_secret_stays(tmp_path: Path) -> None:
    """A name of a topic or of a file must stay readable."""
    sentence = f"{tmp_path}/t: there is no topic 'a=b'"
    assert _error_sentences.masked(sentence, ["verify", f"{tmp_path}/t", "--kafka", "client.id=a"]) == sentence


def test_secrets_of_a_fleets_file_are_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In text, too, not only in a log of JSON."""
    file = tmp_path / "fleet.toml"
    file.write_text(
        f'name = "g"\ntable = "s3://b-{SECRET}/{{topic}}"\nstorage = {{ AWS_SECRET_ACCESS_KEY = "{SECRET}" }}\n'
        f'[sources.eu]\nbootstrap_servers = "localhost:1"\ntopics = ["{SECRET}x"]\n'
    )
    with pytest.raises(SystemExit) as ended:
        main(["fleet", "status", "--config", str(file), "--explain", f"{SECRET}"])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert SECRET not in said.err
