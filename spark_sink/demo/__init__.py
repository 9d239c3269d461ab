"""The main demo: a three-zone Kafka on this machine, real flights, agents that die, and a report.

* `run`: runs the demo, from the first broker to the report; `settings`: its settings.
* `cluster`: a Kafka of several brokers, one per zone.
* `flights`: the data: flights of 2013; `topics`: creates and removes their topics; `producing`: produces them.
* `ingestion`: agents ingest, one is killed, a third joins; `agents`: their processes.
* `verification`: checks that the table has every flight once.
* `timeline`: commits, ownership and events of a run; `figures`: the figures computed from them;
  `busy_seconds`: the rate while there is a backlog; `takeover_parts`: what a takeover waits for.
* `report`: the page.
"""
