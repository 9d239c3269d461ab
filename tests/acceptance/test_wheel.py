"""The wheel contains only the three packages, and works outside the checkout."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PACKAGES = {"assignors", "producer", "spark_sink"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as `make build` does, without a network."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_wheel_holds_exactly_the_three_packages(wheel: Path) -> None:
    """An accidental `tests` or `docker` package would shadow the user's package of that name."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".pyi.bak")) or "__pycache__" in name]


def test_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """Templates and style sheets are not modules, so they are easily forgotten."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    wanted = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_wheel_holds_the_brokers_assignors_once_they_are_built(wheel: Path) -> None:
    """`azimuth cluster up --broker-assignor` works without a checkout, too."""
    if not (ROOT / "build" / "broker" / "azimuth-broker.jar").is_file():
        pytest.skip("`make broker` has not built the jar")
    assert "spark_sink/demo/cluster/azimuth-broker.jar" in zipfile.ZipFile(wheel).namelist()


def test_installed_wheel_answers_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """A new environment gets only the wheel; the dependencies come from the environment of the tests."""
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    purelib = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    install = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install"]
    install += ["--no-index", "--no-deps", "--quiet", "--disable-pip-version-check", str(wheel)]
    installed = subprocess.run(install, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert installed.returncode == 0, installed.stderr
    # A plain line appends a folder to the path, without its .pth files, such as that of the editable install.
    (purelib / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = "import assignors, producer, spark_sink; print(assignors.__file__, producer.__file__, spark_sink.__file__)"
    python = str(environment / "bin" / "python")
    for command in ([str(environment / "bin" / "azimuth"), "--help"], [python, "-m", "spark_sink", "--help"]):
        answered = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert answered.returncode == 0, answered.stderr
        assert "exactly once" in answered.stdout
    found = subprocess.run([python, "-c", where], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert all(Path(path).is_relative_to(environment) for path in found.stdout.split())
