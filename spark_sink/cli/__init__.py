"""The command line: `azimuth`, also `python -m spark_sink`.

A module without an underscore is the command of its name; it imports what it needs inside the call, because most
libraries load slowly and `--help` needs none of them.

* `agent`: one agent of a fleet.
* `autoscale`: workers per topic from lag.
* `claims`: jobs that claim partitions in a database.
* `cluster`: a three-zone Kafka on this machine.
* `demo`: the whole pipeline on this machine.
* `fleet`: the status of a fleet.
* `lag`: the lag of a group.
* `load`: the demo's flights, produced to any cluster.
* `owner`: the node that owns a key.
* `pause`: stops the reading of topics; `azimuth resume` continues it.
* `plan`: the plan of each assignor for a live group; `_plan_producer`: where a producer's records go.
* `prepare`: archives Spark's classes.
* `quarantine`: lists, replays and publishes records that could not be decoded.
* `query`: SQL over a table and the records of Kafka that it lacks.
* `repair`: removes rows that are in a table twice.
* `rewind`: sets the positions of a table back to its rows.
* `simulate`: compares policies on traces; `_simulation_columns`: its columns in words; `_simulation_page`: its report.
* `sink`: one ingestion agent on Spark.
* `verify`: checks that a table has every offset exactly once.
* `_app`: the command tree; expected errors are one sentence and exit code 2.
* `_error_sentences`: these sentences; `_check_lines`: the lines of `--check`.
* `_option_values`: options of several commands; `_process_options`: those of commands that run until a signal.
* `_fleet_file`: reads the file of a fleet; `_tables`: the tables that a command is about.
* `_reachable`: checks that brokers answer before a command starts.
* `_output`: standard output for people; `_long_steps`: progress of a step that may take long.
* `_process_end`: ends a process without the interpreter's teardown.
"""

import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run one command; the exit code is 0 (ok), 1 (a finding) or 2 (usage or environment).

    Args:
        arguments: of the command; None for those of this process, which then exits with the command.
    """
    try:
        if arguments is None:
            _run_as_process()
            return
        # Imported here, because loading takes most of a second and Ctrl-C during it must not print a traceback.
        from spark_sink.cli import _app

        _app.main(arguments)
    except KeyboardInterrupt:
        sys.exit(130)  # the shells' convention: 128 + the signal's number


def _run_as_process() -> None:
    from spark_sink.cli._process_end import ProcessEnd

    # No command computes with large matrices, and numpy's import is 0.1 s of processor time shorter without the threads
    # of its OpenBLAS, which wait actively for work. Not OMP_NUM_THREADS, which limits Arrow to one thread as well.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    end = ProcessEnd()
    end.prepare()
    try:
        from spark_sink.cli import _app

        _app.main(None)
    except SystemExit as ended:
        end.agree(ended.code)
        raise
    except KeyboardInterrupt:
        end.agree(130)
        raise
