"""Compiles the hot paths where there is a C compiler; elsewhere the package is built in pure Python."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

JAR = Path("build", "broker", "azimuth-broker.jar")
"""Where `make broker` puts the broker's assignors."""
SOURCES = (
    Path("assignors", "consumer", "quick_step_compiled.pyx"),
    Path("assignors", "planner", "plan_loops_compiled.pyx"),
    Path("producer", "partitioning", "deliveries_compiled.pyx"),
    Path("producer", "partitioning", "produce_compiled.pyx"),
    Path("spark_sink", "fetch", "copy_compiled.pyx"),
    Path("spark_sink", "fetch", "from_leaders", "batch_decoder_compiled.pyx"),
    Path("spark_sink", "formats", "json_compiled.pyx"),
)


class CompiledHotPaths(BuildHookInterface[Any]):
    """`AZIMUTH_PURE=1` in the environment leaves the compiled modules out: one wheel for every Python and machine."""

    _scratch: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the modules, next to their sources for an editable install, and include them in the wheel."""
        if version == "editable":
            for source in SOURCES:
                for stale in Path(self.root, source).parent.glob(f"{source.stem}.*.so"):
                    stale.unlink()
        elif Path(self.root, JAR).is_file():
            build_data["force_include"][str(Path(self.root, JAR))] = f"spark_sink/demo/cluster/{JAR.name}"
        if os.environ.get("AZIMUTH_PURE"):
            return
        self._scratch = Path(tempfile.mkdtemp(prefix="kafka-azimuth-build-"))
        built = self._compile(self._scratch)
        if not built:
            return
        if version == "editable":
            for folder, library in built:
                shutil.copy(library, Path(self.root, folder))
            return
        build_data["force_include"] |= {
            str(library): f"{folder.as_posix()}/{library.name}" for folder, library in built
        }
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - its hook
        """Remove what the compiler left."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _compile(self, scratch: Path) -> list[tuple[Path, Path]]:
        """Compile the modules; return each one's folder in the package and library; none where that cannot be done.

        Raises:
            CompileError: of Cython, where the source itself is wrong.
        """
        from Cython.Build import cythonize  # noqa: PLC0415 - not needed for a pure wheel
        from setuptools import Distribution, Extension  # noqa: PLC0415 - not needed for a pure wheel
        from setuptools.errors import BaseError, CCompilerError  # noqa: PLC0415 - not needed for a pure wheel

        if sys.byteorder != "little":
            self.app.display_warning("built in pure Python: the compiled code reads words as little endian machines do")
            return []
        extensions = [
            Extension(
                ".".join(source.with_suffix("").parts),
                [str(Path(self.root, source))],
                extra_compile_args=["-O3", "-g0"],
            )
            for source in SOURCES
        ]
        modules = cythonize(extensions, build_dir=str(scratch), quiet=True)
        command = Distribution({"name": "kafka-azimuth", "ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch)
        command.ensure_finalized()
        try:
            command.run()
        except (BaseError, CCompilerError, OSError) as error:
            self.app.display_warning(f"built in pure Python, as its hot paths could not be compiled: {error}")
            return []
        return [
            (source.parent, library)
            for source in SOURCES
            for library in (scratch / "lib" / source.parent).glob(f"{source.stem}.*")
        ]
