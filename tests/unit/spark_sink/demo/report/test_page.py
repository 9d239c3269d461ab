"""The page is complete, safe, small and self-contained."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from spark_sink.demo.report import render, write
from spark_sink.demo.report.__main__ import main
from spark_sink.errors import ReportError

HOSTILE = "<script>alert('&\"{{ 1 }} $x_1$ #fe0000 --> %s {0} 猫"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Collects the elements of a page, and fails on a tag that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []
        self.labels: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the tag and its references."""
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"src", "href", "xlink:href", "srcset", "action", "data"}:
                self.references.append(value or "")
            if name == "aria-label" and tag == "svg":
                self.labels.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An empty element opens nothing."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Every end has its beginning."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.text.append(data)


def test_page_needs_no_network(report: dict[str, Any]) -> None:
    """No address, no script: the page works from a mail, offline, and its policy lets the browser fetch nothing."""
    text = render(report)
    page = Page(text)
    assert all(reference.startswith("#") for reference in page.references)
    assert not {"script", "link", "iframe", "img"} & set(page.tags)
    assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text


def test_page_is_well_formed(report: dict[str, Any]) -> None:
    """Every tag is closed, no id is used twice, every reference has its target, every picture has words."""
    page = Page(render(report))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    assert page.tags.count("svg") == len(page.labels) == 6
    assert all(len(label) > 20 for label in page.labels)


def test_page_is_small_and_repeatable(report: dict[str, Any]) -> None:
    """It can be mailed, and the same run gives the same page."""
    assert len(render(report).encode()) < 300_000
    assert render(report) == render(json.loads(json.dumps(report)))


def test_page_stays_small_when_nothing_merges(report: dict[str, Any]) -> None:
    """The worst case, each neighbour owned by another agent and ten rebalances, stays below 1.5 MB."""
    report["timeline"]["ownership"] = [
        {
            "t": 5.0 * round_ + 0.1 * a,
            "agent": f"agent-{a}",
            "partitions": [p for p in range(672) if mixed(p, round_) == a],
        }
        for round_ in range(10)
        for a in range(3)
    ]
    assert len(render(report).encode()) < 1_500_000


def mixed(partition: int, round_: int) -> int:
    """Spread owners so that neither rows nor times repeat."""
    return (partition * 7919 + round_ * 104729 + partition * round_) % 3


def test_page_holds_the_headline_figures(report: dict[str, Any]) -> None:
    """The findings of the run are in the text, not only in pictures."""
    text = " ".join(" ".join(Page(render(report)).text).split())
    for words in ("336,776", "Exactly once", "9.1 s", "66.7 % → 0.0 %", "17,204", "24.7 s", "$6.67 per TB", "448"):
        assert words in text


def test_no_name_of_a_key_stands_in_a_sentence(report: dict[str, Any]) -> None:
    """`per_agent` and `round_robin` are for programs."""
    made = render(report)
    assert not [key for key in ("per_agent", "round_robin") if key in made]


def without_nth_key(value: Any, nth: int) -> Any:
    """Drop one key from every object inside a value, at every depth of objects."""
    if not isinstance(value, dict):
        return value
    return {key: without_nth_key(inner, nth) for i, (key, inner) in enumerate(value.items()) if i != nth}


@pytest.mark.parametrize("nth", range(6))
def test_every_inner_key_is_optional(report: dict[str, Any], nth: int) -> None:
    """A step that was cut short leaves parts out; the rest must still be shown."""
    changed = {key: without_nth_key(value, nth) for key, value in report.items()}
    assert Page(render(changed)).open == []


@pytest.mark.parametrize("change", ["missing", "null"])
def test_every_key_is_optional(report: dict[str, Any], change: str) -> None:
    """A failed step leaves its keys out or writes null; the findings of the other steps must still be shown."""
    without_pictures = {key: value for key, value in report.items() if key not in {"timeline", "bytes_by_zone"}}
    for name in without_pictures:
        changed = {key: value for key, value in without_pictures.items() if key != name}
        if change == "null":
            changed[name] = None
        assert Page(render(changed)).open == [], name


def test_an_empty_report_says_not_measured() -> None:
    """Nothing is invented."""
    text = " ".join(Page(render({})).text)
    assert "No verdict" in text
    assert text.count("not measured") > 20
    assert "Exactly once" not in text


def test_every_text_is_escaped(report: dict[str, Any]) -> None:
    """Names of agents, topics, zones and versions come from outside; none may become markup, formula or template."""
    raw = json.dumps(report)
    for name in ("agent-2", "az-b", "confluent-kafka", "kafka", "agent-1 killed (SIGKILL)", "takeover", "ingest"):
        raw = raw.replace(json.dumps(name), json.dumps(HOSTILE + name))
    raw = raw.replace("flights.JFK-001", json.dumps(HOSTILE)[1:-1]).replace(
        "The topics have", json.dumps(HOSTILE)[1:-1]
    )
    page = Page(render(json.loads(raw)))
    assert "script" not in page.tags
    assert page.open == []
    assert any(HOSTILE + "agent-2" in text for text in page.text)
    assert not any("var(--" in text for text in page.text if "猫" in text)


def test_a_wrong_type_names_its_place(report: dict[str, Any]) -> None:
    """The reader of the message can find the value."""
    report["timeline"]["lag"][3]["records"] = "many"
    with pytest.raises(ReportError, match=r"timeline\.lag\.3\.records"):
        render(report)


def test_write_puts_the_page_beside_the_report(report: dict[str, Any], tmp_path: Path) -> None:
    """report.json gives report.html, and nothing else is left in the directory."""
    source = tmp_path / "report.json"
    source.write_text(json.dumps(report))
    assert write(source) == tmp_path / "report.html"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "report.json"]
    assert main([str(source)]) == 0


@pytest.mark.parametrize("content", [None, "", "[1]", '{"rows": "x"}'], ids=["no file", "empty", "a list", "no number"])
def test_a_bad_file_is_one_sentence_and_exit_code_2(
    tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, and no page that looks like a result."""
    source = tmp_path / "report.json"
    if content is not None:
        source.write_text(content)
    assert main([str(source)]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "azimuth demo" in printed
    assert not (tmp_path / "report.html").exists()
