"""The address of a table's quarantine, and addresses that no table can have because of it. Pure, without Arrow."""

from typing import Final

from spark_sink.errors import OptionError

SUFFIX: Final = "_quarantine"
_LOG: Final = "_delta_log"
_LONGEST: Final = 255  # bytes of a file name on the usual file systems


def quarantine_of(table: str) -> str:
    """Return the address of a table's quarantine."""
    return f"{table.rstrip('/')}{SUFFIX}"


def base_of(address: str) -> str | None:
    """Return the address of the table whose quarantine has this address; None if it is not a quarantine's."""
    address = address.rstrip("/")
    base = address.removesuffix(SUFFIX)
    return None if base == address or base.endswith("/") else base


def refuse_quarantine_name(address: str, what: str, way_out: str) -> None:
    """Refuse a table that cannot have an address: bad rows of another table would get into it, or it has no room.

    Args:
        address: of the table.
        what: what goes to the table, for the message.
        way_out: a clause that says what the user can do.

    Raises:
        OptionError: the address ends in `_quarantine` or `_delta_log`, or no name is left for its quarantine.
    """
    name = address.rstrip("/").rpartition("/")[2]
    if name == _LOG:
        raise OptionError(f"{what} would go to {address}, which is a folder of Delta's own; {way_out}")
    if "://" not in address and len(quarantine_of(name).encode()) > _LONGEST:
        raise OptionError(
            f"{what} would go to {address}, and the name of its quarantine would be longer than {_LONGEST} bytes; "
            f"{way_out}"
        )
    base = base_of(address)
    if base is not None:
        raise OptionError(
            f"{what} would go to {address}, which is the address for the bad records of the table {base}; nothing was "
            f"written there: {way_out}"
        )


def refuse_quarantine_address(address: str) -> None:
    """Refuse an address, with or without placeholders, at which every table would be a quarantine.

    Raises:
        OptionError: it ends in `_quarantine`.
    """
    refuse_quarantine_name(address, "the rows", "give the table a name that does not end in _quarantine")
