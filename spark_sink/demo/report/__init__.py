"""The report of the demo: one self-contained page with pictures."""

from spark_sink.demo.report._page import render, write

__all__ = ["render", "write"]
