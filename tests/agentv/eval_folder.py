"""An AgentV user's folder, run as that user runs it, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runs.exchange.exports.exports import export_run
from runs.models import Run
from tests.commands.calling import Called, call

SATISFIED = {"type": "code_judge", "script": """printf '{"score": 1}'"""}
"""An evaluator that asks nobody and is content with every answer."""


def cases(*keys: str, evaluators: list[Any] | None = None, **more: Any) -> str:
    """Return an eval file of cases that ask for their own key; JSON is YAML."""
    entries = [
        {
            "id": key,
            "expected_outcome": "It is done.",
            "input_messages": [{"role": "user", "content": f"Do {key}."}],
            "evaluators": evaluators or [SATISFIED],
            **more,
        }
        for key in keys
    ]
    return json.dumps({"evalcases": entries})


def put(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder and return it."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def run_folder(folder: Path, eval_file: str, *targets: dict[str, Any], words: tuple[str, ...] = ()) -> Called:
    """Write an eval file and a targets file, and run the folder in this process on the first target."""
    put(folder, {"evals/work.yaml": eval_file, "targets.yaml": json.dumps({"targets": targets})})
    return call("run_scenarios", str(folder), "--target", targets[0]["name"], "--now", "--json", *words)


def the_run() -> Run:
    """Return the only run there is."""
    return Run.objects.select_related("target").get()


def records() -> list[dict[str, Any]]:
    """Return the run's results as AgentV writes them, in the order of the lines."""
    return [json.loads(line) for line in export_run(the_run().pk, "jsonl").splitlines()]
