"""The errors and warnings of the producers.

ProducerError
├── PolicyError          a setting has a value that cannot work
├── UnknownTopicError    the topic has no partitions here (also a ValueError, as kafka-python expects)
├── MetadataError        leaders or racks could not be read
├── ForkError            the producer was created before this process was forked
└── ZoneDetectionError   a source of the producer's zone did not answer

UserWarning
├── PollWarning          the application does not poll, and the client's reports fill the memory
└── RackWarning          zones cannot be compared, so records will leave their zone
"""

import inspect


class ProducerError(Exception):
    """Base of all errors of the producers; catch it to handle any of them."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


class PolicyError(ProducerError, ValueError):
    """A setting of the producer has a value that cannot work."""


class UnknownTopicError(ProducerError, ValueError):
    """The topic has no partitions in the metadata of this client."""


class MetadataError(ProducerError):
    """Leaders or racks could not be read from the cluster."""


class ForkError(ProducerError):
    """The producer was created before this process was forked, and no thread would send its records here."""


class ZoneDetectionError(ProducerError):
    """A source of the producer's zone did not answer."""


class RackWarning(UserWarning):
    """Zones cannot be compared, so records will leave their zone."""


class PollWarning(UserWarning):
    """The application does not poll, so the client's reports to it fill the memory."""
