"""Documentation that cannot rot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import BaseCommand, get_commands, load_command_class

from tests.data_model_page import PAGE, page
from tests.house_picture import PICTURE, picture

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
CODE_PATH = re.compile(
    r"`((?:evaluators|scenarios|runs|evalhub|tests|templates|static|docs|docker|bin)/[\w./-]*\w/?)`"
)
COMMAND = re.compile(r"(\S*python\S* )?(\S*manage\.py) \w+")
CONTAINERS = ("docker compose exec", "kubectl ")
"""Where the environment is the image's own."""
OUR_COMMANDS = {
    name: app
    for name, app in get_commands().items()
    if app.split(".")[0] in ("evalhub", "scenarios", "runs") and name != "migrate"
}


@pytest.mark.parametrize("name", PAGES, ids=lambda name: str(name.relative_to(ROOT)))
def test_every_link_leads_somewhere(name: Path) -> None:
    broken = [link for link in LINK.findall(name.read_text()) if not (name.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("name", PAGES, ids=lambda name: str(name.relative_to(ROOT)))
def test_every_named_file_exists(name: Path) -> None:
    missing = [path for path in CODE_PATH.findall(name.read_text()) if not (ROOT / path).exists()]
    assert missing == []


def test_every_package_is_in_the_architecture_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    packages = [f"{path.name}/" for path in ROOT.iterdir() if (path / "__init__.py").exists()]
    assert [name for name in packages if name != "tests/" and name not in text] == []


def test_every_folder_of_runs_is_in_the_architecture_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    folders = [f"runs/{path.parent.name}/" for path in (ROOT / "runs").glob("*/__init__.py")]
    assert [name for name in folders if f"`{name}`" not in text] == []


def test_the_picture_of_the_house_is_drawn() -> None:
    assert PICTURE.read_text() == picture(), "Draw it with `python -m tests.house_picture`."


def test_the_data_model_is_drawn() -> None:
    assert PAGE.read_text() == page(), "Draw it with `python -m tests.data_model_page`."


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.mark.parametrize("name", PAGES, ids=lambda name: str(name.relative_to(ROOT)))
def test_commands_are_typed_one_way(name: Path) -> None:
    """Lines to copy name the environment's Python; in sentences a command is `manage.py NAME`."""
    blocks = re.findall(r"^```sh\n(.*?)^```", name.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith(CONTAINERS)]
    typed = {found.group() for line in lines for found in COMMAND.finditer(line.partition("#")[0])}
    assert [each for each in typed if not each.startswith(".venv/bin/python manage.py ")] == []


def options_of(command: BaseCommand, name: str) -> set[str]:
    """Return the long options that a command's help names."""
    parser = command.create_parser("manage.py", name)
    return {*OPTION.findall(re.sub(r"-\n\s*", "-", parser.format_help()))}


@pytest.mark.parametrize("name", OUR_COMMANDS)
def test_every_command_is_documented_with_its_options(name: str) -> None:
    text = (ROOT / "docs" / "command-line.md").read_text()
    shared = options_of(BaseCommand(), name)
    missing = sorted(
        options_of(load_command_class(OUR_COMMANDS[name], name), name) - shared - {*OPTION.findall(text)}
    )
    assert f"`{name}" in text
    assert missing == []


@pytest.mark.parametrize("name", OUR_COMMANDS)
def test_every_command_takes_json(name: str) -> None:
    """As README.md and docs/command-line.md say."""
    assert "--json" in options_of(load_command_class(OUR_COMMANDS[name], name), name)


def test_every_make_target_has_a_description() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
    described = re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE)
    assert set(targets) - set(described) == {"dev"}


def test_the_glossary_explains_every_model() -> None:
    """Each noun of the warehouse that people meet stands in the glossary."""
    text = (ROOT / "docs" / "glossary.md").read_text().lower()
    nouns = ("suite", "scenario", "fixture", "rubric", "guidance", "target", "launch", "run", "trial", "judging",
             "measure", "baseline", "change", "alert", "review")  # fmt: skip
    assert [noun for noun in nouns if f"**{noun}" not in text] == []
