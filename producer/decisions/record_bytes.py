"""Keys, values and headers of a record as the bytes that confluent-kafka sends."""


def key_bytes(key: object) -> bytes:
    """Convert a key to the bytes that are hashed and sent.

    Raises:
        TypeError: it is neither text nor bytes, nor another object with a buffer.
    """
    found = sent_bytes(key)
    if found is None:
        raise TypeError(f"the key must be str, bytes or None, not {type(key).__name__}")
    return found


def sent_bytes(data: object) -> bytes | None:
    """Convert a key or a value to the bytes that confluent-kafka sends; None if it sends none or refuses it.

    confluent-kafka accepts more than text and bytes: a numpy array or scalar or a ctypes array, for example, is sent
    as its bytes.
    """
    if isinstance(data, str):
        return data.encode()
    try:
        return b"".join((data,))  # type: ignore[arg-type]  # requests a buffer, as confluent-kafka does
    except (TypeError, ValueError):
        return None


def headers_length(headers: object) -> int:
    """Return the length of the names and values of headers on the wire, in bytes; 0 if confluent-kafka refuses them."""
    try:
        pairs = list(headers.items() if isinstance(headers, dict) else headers)  # type: ignore[call-overload]  # any type
        return sum(len(str(name).encode()) + len(sent_bytes(value) or b"") for name, value in pairs)
    except (TypeError, ValueError, AttributeError):
        return 0


def check_header_names(headers: object) -> None:
    """Check the names of headers, which confluent-kafka converts to text.

    Raises:
        ValueError: a name cannot be encoded as UTF-8. confluent-kafka (2.16.1) would end the process (SIGSEGV).
    """
    pairs = headers if isinstance(headers, dict | list) else ()
    for pair in pairs:
        name = pair[0] if isinstance(pair, tuple) and isinstance(headers, list) and pair else pair
        try:
            str(name).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"header {name!r}: the name cannot be encoded as UTF-8: {error.reason}") from None
