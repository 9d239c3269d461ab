from spark_sink.fetch.copy_interpreted import binary, destroy, headers, records

__all__ = ["binary", "destroy", "headers", "records"]
