"""Detects the zone of this process, from the sources of `detect_zone`.

```python
AZAwareProducer({"client.rack": detect_zone([EnvironmentZone("ZONE"), Ec2Zone()]), ...})
```
"""

import os
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Protocol

from producer.errors import ZoneDetectionError

_TIMEOUT_S = 1.0


class ZoneSource(Protocol):
    """A source of this process's zone.

    Contract: `zone` returns a name, or raises `ZoneDetectionError` with the source and its answer. It may block
    for about a second; it has no side effects.
    """

    def zone(self) -> str:
        """Name the zone."""
        ...


def detect_zone(sources: Iterable[ZoneSource]) -> str:
    """Query the sources in order and return the first answer.

    Raises:
        ZoneDetectionError: no source answered; the message has the answer of each.
    """
    refusals = []
    for source in sources:
        try:
            return source.zone()
        except ZoneDetectionError as error:
            refusals.append(str(error))
    raise ZoneDetectionError(
        f"no source knows the own zone ({'; '.join(refusals) or 'none was given'}): set client.rack"
    )


@dataclass(frozen=True, slots=True)
class EnvironmentZone:
    """The zone in an environment variable."""

    variable: str

    def zone(self) -> str:
        """Name the zone.

        Raises:
            ZoneDetectionError: the variable is not set, or empty.
        """
        found = os.environ.get(self.variable, "").strip()
        if not found:
            raise ZoneDetectionError(f"environment variable {self.variable} is not set")
        return found


@dataclass(frozen=True, slots=True)
class LabelFileZone:
    """The zone in a file of labels, such as a pod's, mounted by Kubernetes' downward API (`key="value"` lines)."""

    path: Path = Path("/etc/podinfo/labels")
    label: str = "topology.kubernetes.io/zone"

    def zone(self) -> str:
        """Name the zone.

        Raises:
            ZoneDetectionError: the file cannot be read, is not text, or lacks the label.
        """
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ZoneDetectionError(f"{self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ZoneDetectionError(f"{self.path} is not text: {error}") from error
        for line in lines:
            name, _, value = line.partition("=")
            if name == self.label and value.strip('"'):
                return value.strip('"')
        raise ZoneDetectionError(f"{self.path} has no label {self.label}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2Zone:
    """The zone of an EC2 instance: its id (`euw1-az1`), the same in every account, or its name (`eu-west-1a`)."""

    by_id: bool = True
    url: str = "http://169.254.169.254"

    def zone(self) -> str:
        """Name the zone."""
        token = _ask(f"{self.url}/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, method="PUT")
        what = "availability-zone-id" if self.by_id else "availability-zone"
        return _ask(f"{self.url}/latest/meta-data/placement/{what}", {"X-aws-ec2-metadata-token": token})


@dataclass(frozen=True, slots=True, kw_only=True)
class GceZone:
    """The zone of a Google Compute Engine instance (`europe-west1-b`)."""

    url: str = "http://metadata.google.internal"

    def zone(self) -> str:
        """Name the zone."""
        found = _ask(f"{self.url}/computeMetadata/v1/instance/zone", {"Metadata-Flavor": "Google"})
        return found.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureZone:
    """The zone of an Azure virtual machine (`1`, `2`, `3`), after its region (`westeurope-1`)."""

    url: str = "http://169.254.169.254"

    def zone(self) -> str:
        """Name the zone."""
        location, zone = (
            _ask(
                f"{self.url}/metadata/instance/compute/{what}?api-version=2021-02-01&format=text", {"Metadata": "true"}
            )
            for what in ("location", "zone")
        )
        return f"{location}-{zone}"


def _ask(url: str, headers: dict[str, str], method: str = "GET") -> str:
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 - http, by the caller's own url
    # Metadata services are local to the machine: a proxy would query another machine's.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as response:
            found: str = response.read().decode().strip()
    except (OSError, HTTPException, UnicodeDecodeError) as error:
        raise ZoneDetectionError(f"{url}: {error}") from error
    if not found:
        raise ZoneDetectionError(f"{url}: an empty answer")
    return found
