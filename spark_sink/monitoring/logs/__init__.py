"""The log of a command: one format for its own lines and for those of librdkafka, Spark and Spark's workers.

* `line_format`: a log record as text, or as one JSON object a line.
* `masked_secrets`: hides passwords and keys in every line.
* `foreign_lines`: reads the lines that other programs and libraries write to standard error. Pure.
* `stderr_reader`: a process that formats what another one writes to standard error.
* `process_log`: sets the log of this process up.
"""
