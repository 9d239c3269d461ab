"""The warning that no record can stay in its zone, because the racks of producer and brokers do not match. Pure."""

from producer.decisions.producer_settings import ZonePolicy


def rack_problem(policy: ZonePolicy, seen: set[str]) -> str | None:
    """Explain why no record can stay in its zone; None if there is no problem.

    Args:
        policy: the producer's settings.
        seen: every rack of a broker since the creation of the producer, including zones that are down now.

    Returns:
        One sentence with the racks and the remedy.
    """
    if not policy.aware:
        return None
    racks = ", ".join(repr(rack) for rack in sorted(seen)) or "none at all"
    if policy.rack is None:
        return (
            f"this producer's rack is not set, so no record is kept local (racks of the brokers: {racks}): "
            "set client.rack"
        )
    if not seen:
        return (
            f"no broker has a rack, so nothing is known to be local to {policy.rack!r}: set broker.rack on the brokers"
        )
    if policy.rack not in seen:
        return (
            f"no broker has the rack {policy.rack!r} (racks of the brokers: {racks}), so every record leaves its zone: "
            "spell client.rack as broker.rack does; a zone name (eu-west-1a) is not a zone id (euw1-az1)"
        )
    return None
