"""Prevents a checkpoint from being used for two tables, or with damaged files."""

import json

import pyarrow.fs as pa_fs

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.errors import OffsetError, OptionError
from spark_sink.lake.table_addresses import folder_of_spark
from spark_sink.lake.table_storage import filesystem, read_text
from spark_sink.sink.spark_offset_log import parse_offset_log

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


def refuse_damaged(settings: AgentSettings) -> None:
    """Refuse a checkpoint whose newest files are cut off: Spark's error names neither the file nor the way out.

    Raises:
        OptionError: such a file is not as Spark writes it.
    """
    files = filesystem(folder_of_spark(settings.checkpoint), settings.storage)
    for path in ("metadata", *_newest(files, "offsets", 2), *_newest(files, "commits", 1)):
        try:
            text = read_text(files, path)
            if text is not None and path.startswith("offsets/"):
                parse_offset_log(text, path)
            elif text is not None:
                json.loads(text.rpartition("\n")[2])  # a commit has its version in a line before
        except (ValueError, OffsetError) as error:
            raise OptionError(
                f"checkpoint {settings.checkpoint}: its file {path} is damaged; delete the whole folder, or name "
                "another (--checkpoint): the query continues at the positions of the table"
            ) from error


def _newest(files: pa_fs.FileSystem, folder: str, most: int) -> list[str]:
    found = files.get_file_info(pa_fs.FileSelector(folder, allow_not_found=True))
    numbers = sorted((int(one.base_name) for one in found if one.base_name.isdecimal()), reverse=True)
    return [f"{folder}/{number}" for number in numbers[:most]]


def _bound(text: str | None, place: str) -> str | None:
    try:
        value = json.loads(text or "")
    except ValueError:  # missing or partial: an agent died while it wrote the file
        return None
    if not isinstance(value, dict) or not isinstance(value.get("table"), str):
        raise OptionError(f"{place}: it names no table; give another --checkpoint")
    return str(value["table"])
