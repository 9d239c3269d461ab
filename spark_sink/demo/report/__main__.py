"""`python -m spark_sink.demo.report report.json`: writes report.html into the same folder."""

import argparse
import sys
from pathlib import Path

from spark_sink.demo.report import write
from spark_sink.errors import SparkSinkError


def main(arguments: list[str] | None = None) -> int:
    """Write the page; the exit code is 0, or 2 with one sentence when the report cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m spark_sink.demo.report", description=__doc__)
    parser.add_argument("report", type=Path, help="the report.json of a run of the demo")
    try:
        sys.stdout.write(f"{write(parser.parse_args(arguments).report)}\n")
    except SparkSinkError as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
