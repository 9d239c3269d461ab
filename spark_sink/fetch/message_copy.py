"""Copies records out of librdkafka's memory into Arrow: compiled if a C compiler was present at the build."""

try:
    from spark_sink.fetch import copy_compiled as copy
except ImportError:  # built without a C compiler
    from spark_sink.fetch import copy_interpreted as copy  # type: ignore[no-redef]

COMPILED = copy.__name__.endswith("copy_compiled")

binary, destroy, headers, records = copy.binary, copy.destroy, copy.headers, copy.records
