"""Numbers in librdkafka's properties."""


def milliseconds(given: object, default: int) -> int:
    """Read a number as librdkafka does: also hexadecimal, and with a fraction, which it drops.

    Args:
        given: the property's value; None if it is not set.
        default: for no value, and for one that librdkafka refuses itself.
    """
    text = str(given).strip().lower()
    try:
        return int(text, 16) if "x" in text else int(float(text))
    except (ValueError, OverflowError):
        return default
