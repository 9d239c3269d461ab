"""The report of the demo: one self-contained page with pictures.

* `run_record`: the values of report.json, checked.
* `page`: fills the template of the page.
* `findings`: the verdict, the tiles and the figures.
* `flows`: the picture of the traffic between zones.
* `ownership`: the owner of each partition over time.
* `panels`: panels over one time axis; `timeline_pictures`: the pictures in them; `marks`: places the labels of events.
* `theme`: pictures as inline SVG with the page's colours.
"""

from spark_sink.demo.report.page import render, write

__all__ = ["render", "write"]
