"""Settings of a producer whose records a test counts, while brokers are killed."""

from typing import Final

SETTINGS: Final = {
    # Else a request that is repeated on a busy machine puts its records into the log twice.
    "enable.idempotence": True,
    # With more requests in flight and a linger, librdkafka 2.16 spins while a partition waits for answers: in the 5 s
    # after the loss of a broker a producer of 600 records a second took 5 to 6.5 s of CPU time, and so delayed the
    # election of leaders for which it waited. With these it takes 0.02 s.
    "max.in.flight": 1,
    "linger.ms": 0,
    "log_level": 0,
    "log.connection.close": False,
}
