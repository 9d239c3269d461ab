"""Creates a session without the extension of Spark's machine learning.

A new session loads each extension that a jar declares. Of Spark's own jars one does: it registers two functions for
`pyspark.ml`, and for them starts Scala's reflection, which takes 1.9 s of processor time, most of the session's start.
"""

from collections.abc import Mapping

from py4j.java_gateway import JavaObject, JVMView
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

_DECLARED = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
_OF_MACHINE_LEARNING = "/spark-mllib_"
_CHOSEN = "spark.sql.extensions"


def quick_session(conf: Mapping[str, str]) -> SparkSession:
    """Start Spark; with all extensions if the settings name one, or a further jar declares one.

    Args:
        conf: the configuration of the session, the first of this process.
    """
    context = SparkContext.getOrCreate(SparkConf().setAll([*conf.items()]))
    jvm = context._jvm  # noqa: SLF001 -- pyspark's own way to its JVM
    if jvm is not None and not context.getConf().contains(_CHOSEN) and not _has_more_extensions(jvm):
        try:
            return SparkSession(context, jsparkSession=_without_extensions(jvm, context))
        except (Py4JError, TypeError):  # another version makes its session of other parts
            pass
    return SparkSession.builder.config(map={**conf}).getOrCreate()


def _has_more_extensions(jvm: JVMView) -> bool:
    found = jvm.java.lang.Thread.currentThread().getContextClassLoader().getResources(_DECLARED)
    while found.hasMoreElements():
        if _OF_MACHINE_LEARNING not in found.nextElement().toString():
            return True
    return False


def _without_extensions(jvm: JVMView, context: SparkContext) -> JavaObject:
    """Return a session by the constructor that takes the extensions; it has the settings of the context."""
    spark = jvm.org.apache.spark.sql
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    nothing = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
    of_context = context._jsc.sc()  # noqa: SLF001 -- pyspark's own way to it
    session: JavaObject = spark.classic.SparkSession(
        of_context, none, none, spark.SparkSessionExtensions(), nothing, nothing
    )
    return session
