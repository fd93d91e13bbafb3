"""One namespace package from five units: its portions, its layers, its exports, and the wheel that users get."""

import ast
import importlib
import importlib.metadata
import json
import pkgutil
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import kapelle
from tests.tidy.files import REPOSITORY, UNITS, name_of, parsed, project_files, python_files

# Who imports them has them: the package itself, and pytest, which alone loads the plugin of the test kit.
ALWAYS_THERE = {"kapelle", "pytest"}
# What is not in the environment of the tests cannot be asked for the name of its distribution.
ELSEWHERE = {"faust": ["faust-streaming"]}

# Imports every module of the wheel where the checkout cannot be seen: the editable install is a matter of `site`.
IMPORT_ALL = """
import importlib, importlib.metadata, json, pkgutil, sys
wheel, packages = sys.argv[1:]
sys.path[:0] = [wheel]
sys.path.append(packages)
import kapelle
for module in pkgutil.walk_packages(kapelle.__path__, "kapelle."):
    importlib.import_module(module.name)
found = {name: m.__file__ or "" for name, m in sys.modules.items() if name.startswith("kapelle.")}
print(json.dumps({"modules": found, "version": importlib.metadata.version("kapelle")}))
"""


def modules() -> Iterator[ModuleType]:
    """Every module of the package, imported."""
    for found in pkgutil.walk_packages(kapelle.__path__, "kapelle."):
        yield importlib.import_module(found.name)


def portions() -> list[Path]:
    """The packages directly under `kapelle` in each unit."""
    return sorted(
        p for unit in UNITS for p in (REPOSITORY / unit / "kapelle").iterdir() if (p / "__init__.py").exists()
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return next(target.glob("*.whl"))


def test_no_unit_closes_the_namespace() -> None:
    assert [name_of(p) for p in project_files() if p.name == "__init__.py" and p.parent.name == "kapelle"] == []


def test_every_portion_says_that_it_is_typed() -> None:
    assert [name_of(portion) for portion in portions() if not (portion / "py.typed").exists()] == []


def test_layers_import_only_from_those_before_them() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([linter, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout


def test_every_portion_is_under_the_rule_of_the_layers() -> None:
    rules = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]

    assert sorted(rules["root_packages"]) == sorted(f"kapelle.{portion.name}" for portion in portions())


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    declared = {normal(re.split(r"[^A-Za-z0-9._-]", one)[0]) for one in wanted} | ALWAYS_THERE
    distributions = {**ELSEWHERE, **importlib.metadata.packages_distributions()}

    undeclared = {
        f"{name_of(path)}: {package}"
        for path in python_files(*UNITS)
        for package in imported_packages(path)
        if not declared & set(map(normal, distributions.get(package, [package])))
    }

    assert sorted(undeclared) == []


def normal(name: str) -> str:
    """The name of a distribution as all spellings of it have it in common."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported_packages(path: Path) -> set[str]:
    """The packages of others that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names


def test_every_exported_name_exists_once() -> None:
    exports = {module: getattr(module, "__all__", ()) for module in modules()}

    missing = [
        f"{module.__name__}.{name}" for module, names in exports.items() for name in names if not hasattr(module, name)
    ]
    doubled = [module.__name__ for module, names in exports.items() if len(set(names)) != len(names)]
    assert missing == []
    assert doubled == []


def test_the_wheel_holds_only_the_package_and_its_metadata(wheel: Path) -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    names = zipfile.ZipFile(wheel).namelist()

    assert [n for n in names if not n.startswith(("kapelle/", f"kapelle-{version}.dist-info/"))] == []
    assert f"kapelle-{version}.dist-info/licenses/LICENSE" in names
    assert [portion.name for portion in portions() if f"kapelle/{portion.name}/py.typed" not in names] == []


def test_the_wheel_imports_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    packages = sysconfig.get_path("platlib")

    command = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(tmp_path), packages]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [name for name, file in found["modules"].items() if not file.startswith(str(tmp_path))] == []
    assert {f"kapelle.{portion.name}" for portion in portions()} <= set(found["modules"])
