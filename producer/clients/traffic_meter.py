"""`TrafficMeter`: counts the destinations of any confluent-kafka producer's records, from their delivery reports."""

import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError, Message

from assignors.clients import flat
from producer.clients.configured_policy import rack_of
from producer.clients.delivery_reports import payload
from producer.decisions.candidate_partitions_in_zone import Racks, Reason, Replicas, copies_elsewhere, zones_of
from producer.metadata_requests import Topology
from producer.traffic_cost import Count, Flow, Traffic, summarise


class TrafficMeter:
    """Measures a producer without zone awareness, to compare its cost with that of `AZAwareProducer`.

    ```python
    meter = TrafficMeter({"bootstrap.servers": servers, "client.rack": "az-a"})
    producer.produce(topic, value, on_delivery=meter.delivered)
    meter.traffic().cross_zone_share
    ```

    Args:
        config: configuration of a client of the cluster; `client.rack` is the zone of the measured producer.
        racks: rack per broker id, if the cluster cannot be asked for racks.
        timeout_s: time limit of a request to the cluster, seconds.

    Contract: `delivered` may be called from any thread and sends no request. Leaders are read once, when `traffic`
    first needs them: records of a leader that moved before count for its zone at that time.
    """

    def __init__(self, config: Mapping[str, Any], *, racks: Racks | None = None, timeout_s: float = 10.0) -> None:
        self.__rack = rack_of(config := flat(config))
        self.__topology = Topology(config, racks, timeout_s)
        self.__lock = threading.RLock()  # a signal handler may call while this thread holds it
        self.__counts: dict[tuple[str, int], Count] = {}
        self.__zones: dict[str, tuple[str | None, ...]] = {}
        self.__copies: dict[str, tuple[int, ...]] = {}
        self.__started = monotonic()

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Count a delivery report; pass this as `on_delivery`.

        Failed records are not counted. Headers are not counted, because a delivery report has none.
        """
        if error is not None:
            return
        place = message.topic() or "", message.partition() or 0
        record = Count(1, payload(message))
        with self.__lock:
            self.__counts[place] = self.__counts.get(place, Count()).plus(record)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use other credentials from the next request to the cluster on."""
        self.__topology.set_sasl_credentials(username, password)

    def traffic(self) -> Traffic:
        """Return the traffic of the delivered records.

        Raises:
            MetadataError: leaders or racks could not be read.
        """
        with self.__lock:
            counts = dict(self.__counts)
        new = {topic for topic, number in counts if number >= len(self.__zones.get(topic, ()))}
        if new:  # only those: the records of other topics would move to the current zones
            replicas: dict[str, Replicas] = {}
            found = self.__topology.leaders(new, replicas)
            self.__zones |= {topic: zones_of(leaders, self.__topology.racks) for topic, leaders in found.items()}
            self.__copies |= {
                topic: copies_elsewhere(found[topic], held, self.__topology.racks) for topic, held in replicas.items()
            }
        flows = (self.__flow(place, count, self.__rack) for place, count in counts.items())
        copied = (
            sum(count.bytes * self.__copies_of(place) for place, count in counts.items()) if self.__copies else None
        )
        seconds = monotonic() - self.__started
        return summarise(flows, self.__rack, delivered=True, replicated_bytes=copied, seconds=seconds)

    def __copies_of(self, place: tuple[str, int]) -> int:
        topic, partition = place
        copies = self.__copies.get(topic, ())
        return copies[partition] if partition < len(copies) else 0

    def __flow(self, place: tuple[str, int], count: Count, rack: str | None) -> Flow:
        topic, partition = place
        zones = self.__zones.get(topic, ())
        zone = zones[partition] if partition < len(zones) else None
        return Flow(topic, zone, Reason.LOCAL if zone == rack and rack else Reason.NOT_AWARE, count)
