"""What an operator sees of a running process.

* `live`: page, status, metrics and probes over HTTP.
* `logs`: the log of a command.
"""
