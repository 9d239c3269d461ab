"""The Spark session of an agent."""

import contextlib
import logging
import socket
import subprocess
import sys
import threading

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from spark_sink.agent.spark_session import leave_out_tracebacks

_ASKS = """
import sys
from spark_sink.agent.spark_session import leave_out_testing
leave_out_testing()
import numpy
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter
print(NumpyArrayConverter().can_convert(numpy.zeros(2)), NumpyArrayConverter().can_convert("text"))
print(NumpyScalarConverter().can_convert(numpy.int64(1)), NumpyScalarConverter().can_convert(1))
print(sorted(name for name in ("pandas", "unittest") if name in sys.modules))
"""


def test_calls_into_the_jvm_do_not_load_pandas_nor_support_for_tests() -> None:
    """Both took 0.3 s of each start, between two steps of Spark's."""
    said = subprocess.run([sys.executable, "-c", _ASKS], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["True False", "True False", "[]"]


def test_the_loss_of_the_jvm_is_raised_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """py4j logs some of its errors with its own loggers, and a connection lost in a call with the root logger."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def end_without_an_answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.recv(4096)

        threading.Thread(target=end_without_an_answer, daemon=True).start()
        port = GatewayParameters(port=server.getsockname()[1])  # type: ignore[no-untyped-call]
        gateway = JavaGateway(gateway_parameters=port)  # type: ignore[no-untyped-call]
        leave_out_tracebacks()
        with caplog.at_level(logging.INFO), pytest.raises(Py4JError):
            gateway.jvm.System.currentTimeMillis()
    assert not caplog.records
