"""Which table a topic goes to."""

import sys
from pathlib import Path

import pytest

from spark_sink.errors import OptionError
from spark_sink.sink.topic_routes import Routes


def test_one_table_takes_all_topics() -> None:
    """The plain case: no rule, no placeholder."""
    routes = Routes.parse("/lake/all/")
    assert routes.by_table(["a", "b"]) == {"/lake/all": {"a", "b"}}


def test_a_placeholder_makes_a_table_of_each_topic() -> None:
    """Also in the address of a rule."""
    routes = Routes.parse("s3://lake/raw_{topic}", '{"flights[.].*": "s3://lake/{topic}/x"}')
    assert routes.table("orders") == "s3://lake/raw_orders"
    assert routes.table("flights.JFK-LAX") == "s3://lake/flights.JFK-LAX/x"


def test_the_first_rule_that_matches_the_whole_name_wins() -> None:
    """A rule for `a` says nothing of `ab`."""
    routes = Routes.parse("/rest", '{"a": "/one", "a.*": "/two", "ab": "/never"}')
    assert [routes.table(topic) for topic in ("a", "ab", "ba")] == ["/one", "/two", "/rest"]


@pytest.mark.parametrize("routes", ["[1]", "{", '{"(": "/x"}', '{"a": 3}', '{"a": ""}'])
def test_what_is_no_route_is_refused(routes: str) -> None:
    """Before the query starts, with the option's name."""
    with pytest.raises(OptionError, match=r"option '(routes|path)'"):
        Routes.parse("/rest", routes)


def test_a_folder_that_would_be_taken_for_another_is_refused(tmp_path: Path) -> None:
    """delta-rs reads `a%20b` as `a b`; a single percent sign is unchanged."""
    with pytest.raises(OptionError, match="read as another folder"):
        Routes.parse(str(tmp_path / "a%20b" / "table"))
    assert Routes.parse(str(tmp_path / "100%")).default.endswith("/100%")


def test_a_backslash_that_delta_rs_reads_as_a_slash_is_refused(tmp_path: Path) -> None:
    """The positions of another table would decide about the batches of this one."""
    with pytest.raises(OptionError, match="read as a slash"):
        Routes.parse(str(tmp_path / "a\\b" / "table"))


@pytest.mark.parametrize("address", ["s3://lake/a#1/{topic}", "s3://lake/a?1/{topic}", "abfss://c@a/t?sig=secret"])
def test_an_address_of_which_delta_rs_leaves_out_a_part_is_refused(address: str) -> None:
    """All topics, and their quarantines, would be in one table, which is none of these."""
    with pytest.raises(OptionError, match="leaves out the address") as caught:
        Routes.parse(address)
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="pathlib takes it there, and the first write is refused")
def test_a_folder_that_is_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    """Its error has another class than those of other folders."""
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(OptionError, match=r"is not the name of a folder: .*loop"):
        Routes.parse(str(tmp_path / "circle" / "table"))


@pytest.mark.parametrize("address", ["/lake/a_quarantine", "s3://lake/a_quarantine/", "/lake/{topic}_quarantine"])
def test_a_table_with_the_address_of_a_quarantine_is_refused(address: str) -> None:
    """Bad rows of the table without the suffix would get into it."""
    with pytest.raises(OptionError, match=r"option 'path': .*a name that does not end in _quarantine"):
        Routes.parse(address)
    with pytest.raises(OptionError, match=r"option 'routes': topics of 'a\.\*'"):
        Routes.parse("/rest", f'{{"a.*": "{address}"}}')


def test_a_topic_whose_table_would_be_a_quarantine_is_refused() -> None:
    """Only this topic: it can arrive while a query runs, and another address is the way out."""
    routes = Routes.parse("/lake/{topic}")
    assert routes.table("a") == "/lake/a"
    with pytest.raises(OptionError, match=r"'a_quarantine' would go to .* records of the table /lake/a; .*'routes'"):
        routes.by_table(["a", "a_quarantine"])
    routes = Routes.parse("/lake/{topic}", '{"(.*)_quarantine": "/lake/{topic}/rows"}')
    assert routes.table("a_quarantine") == "/lake/a_quarantine/rows"
    assert Routes.parse("iceberg://c.n.{topic}", address=str).table("a") == "iceberg://c.n.a"
    with pytest.raises(OptionError, match="bad records of the table iceberg://c"):
        Routes.parse("iceberg://c.n.{topic}", address=str).table("a_quarantine")
