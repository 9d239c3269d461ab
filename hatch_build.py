"""Compiles the producer's hot path where there is a C compiler; elsewhere the package is built in pure Python."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "producer.partitioning.produce_compiled"
SOURCE = Path("producer", "partitioning", "produce_compiled.pyx")


class CompiledHotPath(BuildHookInterface[Any]):
    """`AZIMUTH_PURE=1` in the environment leaves the compiled module out: one wheel for every Python and machine."""

    _scratch: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the module, next to its source for an editable install, and include it in the wheel."""
        beside = Path(self.root, SOURCE).parent
        if version == "editable":
            for stale in beside.glob("produce_compiled.*.so"):
                stale.unlink()
        if os.environ.get("AZIMUTH_PURE"):
            return
        self._scratch = Path(tempfile.mkdtemp(prefix="kafka-azimuth-build-"))
        built = self._compile(self._scratch)
        if built is None:
            return
        if version == "editable":
            shutil.copy(built, beside)
            return
        build_data["force_include"][str(built)] = f"producer/partitioning/{built.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - its hook
        """Remove what the compiler left."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _compile(self, scratch: Path) -> Path | None:
        """Compile the module into a folder; None where that cannot be done here.

        Raises:
            CompileError: of Cython, where the source itself is wrong.
        """
        from Cython.Build import cythonize  # noqa: PLC0415 - not needed for a pure wheel
        from setuptools import Distribution, Extension  # noqa: PLC0415 - as above
        from setuptools.errors import BaseError, CCompilerError  # noqa: PLC0415 - as above

        if sys.byteorder != "little":
            self.app.display_warning("built in pure Python: the compiled hash reads words as little endian machines do")
            return None
        extension = Extension(MODULE, [str(Path(self.root, SOURCE))], extra_compile_args=["-O3", "-g0"])
        modules = cythonize([extension], build_dir=str(scratch), quiet=True)
        command = Distribution({"name": "kafka-azimuth", "ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch)
        command.ensure_finalized()
        try:
            command.run()
        except (BaseError, CCompilerError, OSError) as error:
            self.app.display_warning(f"built in pure Python, as {SOURCE} could not be compiled: {error}")
            return None
        (built,) = (scratch / "lib" / "producer" / "partitioning").glob("produce_compiled.*")
        return built
