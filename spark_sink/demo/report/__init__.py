"""The report of the demo: one self-contained page with pictures."""

from spark_sink.demo.report.page import render, write

__all__ = ["render", "write"]
