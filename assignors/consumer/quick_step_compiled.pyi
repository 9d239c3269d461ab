from collections.abc import Iterator

from confluent_kafka import Message

from assignors.consumer.quick_step_interpreted import QuickStep, Readiness

__all__ = ["TAKES_RECORDS", "Parts", "QuickStep", "Readiness"]

TAKES_RECORDS: bool

class Parts(Iterator[list[Message]]):
    def __init__(self, whole: list[Message], length: int) -> None: ...
    def __next__(self) -> list[Message]: ...
    def __length_hint__(self) -> int: ...
    def __copy__(self) -> Parts: ...
