"""Published settings of polls, and how a reader of several topics follows them."""

import pytest

from assignors.scaling import PollSettings, ScaledTopic, WorkersRecord, narrowest, published_polls


def test_only_settings_of_the_group_on_the_cluster_count() -> None:
    """The topic holds the numbers of all groups and clusters; most records have no settings of polls."""
    records = {
        ScaledTopic("c", "g", "a"): WorkersRecord(workers=1, at_ms=1, max_poll_records=500, poll_timeout_ms=250),
        ScaledTopic("c", "g", "b"): WorkersRecord(workers=1, at_ms=1),
        ScaledTopic("c", "other", "a"): WorkersRecord(workers=1, at_ms=1, max_poll_records=1),
        ScaledTopic("d", "g", "a"): WorkersRecord(workers=1, at_ms=1, max_poll_records=2),
    }
    assert published_polls(records, "c", "g") == {"a": PollSettings(records=500, timeout_s=0.25)}


@pytest.mark.parametrize(
    ("polls", "expected"),
    [
        ([], (5000, 0.05)),
        ([PollSettings(records=700)], (700, 0.05)),
        ([PollSettings(records=700), PollSettings(records=9000, timeout_s=0.5)], (700, 0.5)),
        ([PollSettings(records=9000)], (9000, 0.05)),  # above the reader's own: it is what was asked for
        ([PollSettings(timeout_s=60.0)], (5000, 1.0)),  # no longer than the reader can bear
        ([PollSettings(timeout_s=0.2), PollSettings(timeout_s=0.1)], (5000, 0.1)),
    ],
)
def test_the_smallest_setting_of_the_topics_applies(polls: list[PollSettings], expected: tuple[int, float]) -> None:
    """One poll returns records of all topics of a consumer, so none of them gets more than it bears."""
    assert narrowest(polls, 5000, 0.05, 1.0) == expected
