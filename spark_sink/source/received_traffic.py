"""The consumer's leg of a query: what its tasks received, by topic and zone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assignors import ReceivedTraffic
from assignors.clients import BrokerRacks, Received
from spark_sink.fetch.received_files import Counts, read_received


class QueryTraffic:
    """Reads the folder of a query's option `traffic`.

    ```python
    QueryTraffic(folder, {"bootstrap.servers": servers, "client.rack": "az-a"}).read().cost(price_per_gb=0.01)
    ```

    Args:
        folder: value of the option.
        kafka: librdkafka's properties of a client of the cluster, which reads the racks of the brokers; `client.rack`
            is the zone of the query's tasks.
    """

    def __init__(self, folder: str | Path, kafka: Mapping[str, Any]) -> None:
        self._folder = Path(folder)
        self._rack = kafka.get("client.rack")
        self._racks = BrokerRacks(kafka)
        self._last: Counts = {}

    def read(self) -> ReceivedTraffic:
        """Return what all tasks received so far, those of earlier processes included.

        Bytes are those of keys and values, decompressed; bytes on the wire are not known. It may wait 6 s for the racks
        of brokers that were not known before.
        """
        return self._by_zone(read_received(self._folder))

    def fresh(self) -> ReceivedTraffic:
        """Return what the tasks received since the last call: for counters, as a zone may become known later."""
        counts, before = read_received(self._folder), self._last
        self._last = counts
        new = {cell: count.minus(before.get(cell, Received())) for cell, count in counts.items()}
        return self._by_zone({cell: count for cell, count in new.items() if count.records > 0})

    def _by_zone(self, counts: Counts) -> ReceivedTraffic:
        racks = self._racks.of({broker for _, broker in counts})
        return ReceivedTraffic.of(counts, racks, self._rack)
