"""The command line: `azimuth`, also `python -m spark_sink`."""

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
