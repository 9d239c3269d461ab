"""Handles delivery reports: counts delivered records, if deliveries count, and calls the application's callback."""

from collections.abc import Mapping
from logging import Logger
from typing import Any

from confluent_kafka import KafkaError, Message

from producer.clients.produce_batch import Messages, has_own_partition
from producer.decisions.producer_settings import ZonePolicy
from producer.decisions.record_bytes import check_header_names, headers_length
from producer.errors import PolicyError
from producer.partitioning.produce_interpreted import Delivered, Kind
from producer.partitioning.topics_in_use import TopicsInUse
from producer.traffic_cost import Count


class DeliveryReports:
    """Connects the client's delivery reports with the application's callbacks.

    Contract: callbacks run in the thread that polls, the count before the application's callback. Failed records are
    not counted.
    """

    def __init__(self, topics_in_use: TopicsInUse) -> None:
        self._given = False
        self._default: Delivered | None = None
        self._topics_in_use = topics_in_use
        self._counts = topics_in_use.policy.counts_deliveries

    def may_poll(self) -> bool:
        """Return whether the application has set no callback, so that it cannot see which thread polls."""
        return not self._given

    def with_default(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration with the counting default callback, if deliveries count.

        Raises:
            PolicyError: deliveries count, but librdkafka would report only failed ones.
        """
        if self._counts and str(config.get("delivery.report.only.error", "")).lower() in {"true", "t", "1"}:
            raise PolicyError(
                "count='delivered' needs a report of each record: remove delivery.report.only.error, or count='queued'"
            )
        self._default = config.get("on_delivery")
        self._given |= any(callable(value) or isinstance(value, Logger) for value in config.values())
        is_valid = self._default is None or callable(self._default)  # else the client refuses it, and names it
        return {**config, "on_delivery": self._counting(self._default)} if self._counts and is_valid else config

    def before(self, callback: Delivered | None, headers: object = None, *, explicit: bool = False) -> Delivered | None:
        """Return the callback for the client in place of the application's.

        Args:
            callback: callback of one call of the application, None for the default one.
            headers: headers of the record; a delivery report (confluent-kafka 2.16.1) does not contain them.
            explicit: whether the caller chose the partition.

        Raises:
            ValueError: a header's name cannot be sent.
        """
        if headers is not None:
            check_header_names(headers)
        if callback is not None:
            self._given = True
        if not self._counts or (callback is None and headers is None and not explicit):
            return callback
        extra = 0 if headers is None else headers_length(headers)
        return self._counting(self._default if callback is None else callback, extra, explicit=explicit)

    def in_batch(self, messages: Messages, callback: Delivered | None, *, explicit: bool) -> Messages:
        """Return the messages for the client; a message that the call's callback would miscount gets its own callback.

        A message's own `callback` takes the place of the call's callback, and its own `partition` makes it explicit.
        """
        self._given |= any(message.get("callback") is not None for message in messages)
        return [self._with_callback(one, callback, explicit=explicit) for one in messages] if self._counts else messages

    def _with_callback(self, message: dict[str, Any], callback: Delivered | None, *, explicit: bool) -> dict[str, Any]:
        own, chosen = message.get("callback"), has_own_partition(message)
        if own is None and not chosen:
            return message
        theirs = callback if own is None else own
        counting = self._counting(self._default if theirs is None else theirs, explicit=explicit or chosen)
        return {**message, "callback": counting}

    def _counting(self, callback: Delivered | None, extra: int = 0, *, explicit: bool = False) -> Delivered:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                kind = kind_of(message.key(), self._topics_in_use.policy, explicit=explicit)
                topic, partition = message.topic() or "", message.partition()
                count = Count(1, payload(message) + extra)
                self._topics_in_use.count_delivered(topic, -1 if partition is None else partition, kind, count)
            if callback is not None:
                callback(error, message)

        return delivered


def kind_of(key: str | bytes | None, policy: ZonePolicy, *, explicit: bool) -> Kind:
    """Return the way in which a record got its partition."""
    if explicit:
        return "explicit"
    return "unkeyed" if key is None or (not key and policy.partitioner.empty_is_null) else "keyed"


def payload(message: Message) -> int:
    """Measure the key and the value of a delivered record, in bytes."""
    return len(message.value() or b"") + len(message.key() or b"")
