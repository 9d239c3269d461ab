"""Prevents a checkpoint from being used for two tables."""

import json

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.errors import OptionError
from spark_sink.lake.table_addresses import folder_of_spark
from spark_sink.lake.table_storage import filesystem, read_text

_BINDING = "azimuth-table.json"


def bind_checkpoint(settings: AgentSettings) -> None:
    """Write the table's address into a new checkpoint, or compare it with the address in an existing one.

    A checkpoint has the progress of a query; for another table it would leave a hole.

    Raises:
        OptionError: the checkpoint belongs to another table.
    """
    if refuse_other_table(settings) is None:
        files = filesystem(folder_of_spark(settings.checkpoint), settings.storage, make=True)
        with files.open_output_stream(_BINDING) as stream:
            stream.write(json.dumps({"table": settings.address}).encode())


def refuse_other_table(settings: AgentSettings) -> str | None:
    """Return the address of the checkpoint's table; None for a new checkpoint.

    Raises:
        OptionError: it is not the table of the settings.
    """
    table = settings.address
    files = filesystem(folder_of_spark(settings.checkpoint), settings.storage)
    bound = _bound(read_text(files, _BINDING), f"{settings.checkpoint}/{_BINDING}")
    if bound not in {None, table}:
        raise OptionError(
            f"checkpoint {settings.checkpoint} is of the table {bound}, not of {table}: give each table a checkpoint "
            "of its own (--checkpoint)"
        )
    return bound


def _bound(text: str | None, place: str) -> str | None:
    try:
        value = json.loads(text or "")
    except ValueError:  # missing or partial: an agent died while it wrote the file
        return None
    if not isinstance(value, dict) or not isinstance(value.get("table"), str):
        raise OptionError(f"{place}: it names no table; give another --checkpoint")
    return str(value["table"])
