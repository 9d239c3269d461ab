"""What makes the start of an agent short.

Spark's own start takes 25 to 30 s of processor time, most of it before the first record. For each step of a query's
start Spark starts another Python: to look up a format, to create the source and the sink, to plan a read and a write,
to run the reader, the tasks and the commit. Each loads pyspark, Arrow and the formats again, which takes 0.4 to 1 s of
processor time, and each waits for the one before. Also, the JVM reads and verifies 17,000 classes.

* `early_spark`: launches the JVM while the agent loads its modules and makes its checks.
* `quick_session`: the session, without an extension that takes most of its time.
* `warm_python`: starts the server, and gives Spark a command that stands in for `python`.
* `fork_client`: that command; it requests a process from the server, and lives as long as this process.
* `fork_server`: loads the modules while the JVM starts, and forks; `fork_request`: what it is asked for.
* `early_reader`: the forked process that joins the group while Spark starts, and becomes the reader.
* `worker_modules`: the modules that the server loads.
* `spark_archive`: Spark's classes, as the JVM maps them into memory, and the query that loads them.
* `class_archive`: such archives of a JVM's classes, Spark's and Kafka's.
* `java_command`: Java on this machine, and the folder for what is kept from run to run.
"""
