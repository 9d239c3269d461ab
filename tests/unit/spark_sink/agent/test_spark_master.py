"""Spark's masters: each form of Spark is accepted, and a mistyped one is refused before the JVM starts."""

import re

import pytest

from spark_sink.agent.spark_master import check_configured_master, check_master


@pytest.mark.parametrize(
    "text",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[4, 2]",
        "local[*,3]",
        "local-cluster[2, 1, 1024]",
        "spark://host:7077",
        "spark://one:7077,two:7077",
        "spark://[::1]:7077",
        "yarn",
        "k8s://https://host:443",
        "k8s://host",
    ],
)
def test_each_form_of_spark_is_accepted(text: str) -> None:
    """These are the forms of SparkSubmit; a refusal of one would keep an agent from its cluster."""
    assert check_master(text) == text
    assert check_configured_master({"spark.master": text}) == {"spark.master": text}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lcal", "did you mean 'local'?"),
        ("lcal[4]", "did you mean 'local[4]'?"),
        ("Local[*]", "did you mean 'local[*]'?"),
        ("sparc://m:7077", "did you mean 'spark://m:7077'?"),
        ("local[0]", "need local, local[4], local[*] or local[4,2]"),
        ("local[two]", "need local, local[4]"),
        ("local*", "need local, local[4]"),
        (" local", "need one such as local"),
        ("local-cluster[2]", "need local-cluster[2,1,1024]"),
        ("spark://host", "need spark://host:7077"),
        ("spark//host:7077", "need spark://host:7077"),
        ("yarn-client", "need one such as local, local[4], local[*] or local[4,2], local-cluster[2,1,1024]"),
        ("mesos://host:5050", "need one such as"),
        ("k8s://", "need k8s://https://host:443"),
        ("", "need one such as"),
    ],
)
def test_another_text_is_refused_with_the_way_out(text: str, says: str) -> None:
    """Spark itself says it only in the trace of a JVM that ended."""
    with pytest.raises(ValueError, match=re.escape(f"{text!r} is no master of Spark; {says}")):
        check_master(text)
    with pytest.raises(ValueError, match=re.escape(f"spark.master: {text!r} is no master of Spark")):
        check_configured_master({"spark.master": text})
