"""What holds for files of every kind: nothing of one machine, nothing of one network."""

import re
import tomllib

from tests.tidy.files import REPOSITORY, name_of, project_files, python_files

# Each is spelt in two halves, so that this file does not find itself.
MACHINE_PATHS = tuple(
    re.compile(rf"(?<![\w.])/{name}/") for name in ("ho" + "me", "ro" + "ot", "Us" + "ers", "wo" + "rk")
)
REGISTRIES = tuple(
    a + b
    for a, b in (
        ("pypi", ".org"),
        ("python", "hosted.org"),
        ("maven", ".apache.org"),
        ("maven", ".org"),
        ("docker", ".io"),
        ("ghcr", ".io"),
        ("quay", ".io"),
        ("npmjs", ".org"),
    )
)
# The address that names Maven's own format is a name, not a place to fetch from.
NAMES_NOT_PLACES = ("http://maven.apache.org/POM/4.0.0",)


def lines() -> list[tuple[str, str]]:
    """Every line of text in the project, with where it is."""
    found: list[tuple[str, str]] = []
    for path in project_files():
        content = path.read_bytes()
        if b"\0" not in content:
            text = content.decode(errors="replace").splitlines()
            found += [(f"{name_of(path)}:{number}", line) for number, line in enumerate(text, 1)]
    return found


def test_no_file_names_a_path_of_one_machine() -> None:
    assert [where for where, line in lines() if any(path.search(line) for path in MACHINE_PATHS)] == []


def test_no_file_names_a_package_registry() -> None:
    def stripped(line: str) -> str:
        for name in NAMES_NOT_PLACES:
            line = line.replace(name, "")
        return line

    assert [where for where, line in lines() if any(host in stripped(line) for host in REGISTRIES)] == []


def test_every_python_file_is_under_the_eye_of_the_type_checker() -> None:
    checked = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["mypy"]["files"]

    assert {name_of(p) for p in python_files()} - {name_of(p) for p in python_files(*checked)} == set()


def test_every_dependency_is_locked_with_its_hash() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    locked = (REPOSITORY / "requirements.lock").read_text()

    names = [re.split(r"[><=\[ ]", requirement)[0] for requirement in wanted]
    unlocked = [
        name for name in names if not re.search(rf"^{re.escape(name)}==\S+ (;.*)?\\\n    --hash=", locked, re.MULTILINE)
    ]
    assert unlocked == []
