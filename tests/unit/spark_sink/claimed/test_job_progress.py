"""The progress log of a job."""

from spark_sink.claimed.job_progress import JobProgress


def test_a_line_sums_up_the_rounds_of_ten_seconds() -> None:
    """Rows, their rate, and the worst lag in seconds; a job with nothing to do says so once."""
    said: list[str] = []
    now = [0.0]
    progress = JobProgress(said.append, lambda: now[0])
    for moment, rows, late in [
        (4, 100, {"x": 2.0, "y": 70.4}),
        (8, 50, {}),
        (10, 50, {"x": 1.0}),
        (25, 0, {"x": 0.0}),
        (40, 0, {}),
    ]:
        now[0] = moment
        progress.note(rows, late)
    quiet = "claims: no new records; the next line comes when there are some"
    assert said == ["claims: 200 rows written (20/s), the oldest unread record was 70 s old (y)", quiet]
    now[0] = 50
    progress.note(10, {"x": 0.0})
    assert said[2:] == ["claims: 10 rows written (1/s)"]
    progress.end()
    assert said[3:] == ["claims: the job ends; it has written 210 rows"]


def test_a_job_that_reads_nothing_does_not_claim_that_there_is_nothing() -> None:
    """The database or the brokers are away, a table refuses, or other jobs hold every partition."""
    said: list[str] = []
    now = [0.0]
    progress = JobProgress(said.append, lambda: now[0])
    for moment, all_read in [(6, False), (12, True), (20, True), (24, True)]:
        now[0] = moment
        progress.note(0, {}, all_read=all_read)
        assert bool(said) == (moment == 24)
