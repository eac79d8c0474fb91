"""A suite about a bicycle yard's tool, whose shell agent does what the prompt says."""

from __future__ import annotations

from pathlib import Path

TOOL = """#!/bin/sh
case "$1 $3" in
  "return {option}") echo "returned $2" | tee return.txt ;;
  "return "*) echo "yard return: {option} is required" >&2; exit 2 ;;
  *) echo "$1 $2" | tee "$1.txt" ;;
esac
"""
PROMPTS = {
    "list-bikes": ("list", "./yard list all"),
    "rent-bike": ("rent", "./yard rent blue"),
    # The guidance names the command, too.
    "return-bike": ("return", "./yard return blue --km 12 || sh AGENTS.md; true"),
}


def make_yard(parent: Path) -> Path:
    """Return a folder with the suite's three scenarios, whose tool returns bikes with `--km`."""
    folder = parent / "yard"
    (folder / "templates/yard").mkdir(parents=True)
    (folder / "templates/yard/AGENTS.md").write_text("exit 1\n")
    for key, (file, prompt) in PROMPTS.items():
        (folder / f"{key}.yaml").write_text(
            f"name: {key}\ntemplate_folder: yard\ntarget: {{binary: yard, files: [yard]}}\n"
            f"task: {{prompt: '{prompt}'}}\nevaluation: {{gates: [{{type: file_exists, path: {file}.txt}}]}}\n"
        )
    return install(folder, "--km")


def install(folder: Path, option: str) -> Path:
    """Put the tool into the suite's template, whose `return` needs this option."""
    tool = folder / "templates/yard/yard"
    tool.write_text(TOOL.format(option=option))
    tool.chmod(0o755)
    return folder
