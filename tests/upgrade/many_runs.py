"""Write a data folder of 0.1.1 with many runs of codex by the rules of 0.1.0: `python -m tests.upgrade.many_runs RUNS`.

`EVALHUB_DATA` is the folder. Each run has a trial with stored raw output and one without, which cost alike.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

FIRST = 1000
"""The number of the first of these runs; trials have twice the number, and one more."""
TARGET = 100
USAGE = {"input_tokens": 1_000_000, "cached_input_tokens": 900_000, "output_tokens": 50_000}
RATES = {"input": 10.0, "output": 20.0}
OLD_COST = 11.0
"""With cached tokens charged in full, for 10 and 20 dollars per million."""

Row = dict[str, Any]


def raw_output() -> bytes:
    """Return what codex printed."""
    run = {
        "id": "c",
        "type": "command_execution",
        "command": "git status",
        "exit_code": 0,
        "status": "completed",
    }
    say = {"id": "m", "type": "agent_message", "text": "Done."}
    lines = (
        {"type": "item.completed", "item": run},
        {"type": "item.completed", "item": say},
        {"type": "turn.completed", "usage": USAGE},
    )
    return b"\n".join(json.dumps(line).encode() for line in lines)


def many_runs(rows: list[Row], runs: int, sha256: str, size: int) -> list[Row]:
    """Return further rows: runs of codex like the first run, whose trials' costs were computed by a price."""
    by_model = {
        name: [row for row in rows if row["model"] == name] for name in {row["model"] for row in rows}
    }
    run, target = by_model["runs.run"][0], by_model["runs.target"][0]
    trial = next(each for each in by_model["runs.trial"] if each["fields"]["run"] == run["pk"])
    definition = {"name": "codex", "provider": "codex", "model": "m"}
    found = [_like(target, TARGET, name="codex", provider="codex", definition=definition)]
    sums = {"trials": 2, "passed": 2, "failed": 0, "outcome": "pass", "cost_usd": 2 * OLD_COST}
    sums |= {"recounted": 0, "repriced": 0, "counting": {}, "cost_notes": [], "price_source": ""}
    tokens = {"tokens_in": USAGE["input_tokens"], "tokens_out": USAGE["output_tokens"]}
    for number in range(FIRST, FIRST + runs):
        both = {name: 2 * count for name, count in tokens.items()}
        found.append(_like(run, number, target=TARGET, model="m", **sums, **both))
        for index in (0, 1):
            key = 2 * number + index
            about = {
                "run": number,
                "index": index,
                "position": index,
                "outcome": "pass",
                "cost_usd": OLD_COST,
            }
            found.append(_like(trial, key, **about, **tokens))
            found.append({"model": "runs.transcriptrecord", "pk": key, "fields": _transcript()})
        kept = {"trial": 2 * number, "name": "transcript", "sha256": sha256, "size": size}
        found.append({"model": "runs.artifact", "pk": number, "fields": {**kept, "media_type": "text/plain"}})
    return found


def _like(row: Row, pk: int, **changes: Any) -> Row:
    return {**row, "pk": pk, "fields": {**row["fields"], **changes}}


def _transcript() -> Row:
    """Return a transcript as that release stored it, whose usage has two numbers."""
    call = {"type": "tool_call", "id": "c", "name": "shell", "command": "git status"}
    usage = {"input": USAGE["input_tokens"], "output": USAGE["output_tokens"], "estimated": False}
    value = {"events": [call, {"type": "tool_result", "id": "c", "exit_code": 0}], "source": "stream"}
    data = zlib.compress(json.dumps({**value, "usage": usage}).encode())
    return {"source": "stream", "data": base64.b64encode(data).decode(), "events": 2}


def figures() -> list[Any]:
    """Return what a recomputation writes, without times."""
    from runs.models import Run, RunMeasure, Trial

    return [
        list(Trial.objects.order_by("pk").values_list("pk", "cost_usd", "tokens_in", "detail", "scores")),
        list(
            Run.objects.order_by("pk").values_list("pk", "cost_usd", "price_source", "cost_notes", "repriced")
        ),
        list(
            RunMeasure.objects.order_by("run", "measure", "scenario").values_list(
                "run", "scenario", "measure__layer", "measure__name", "n", "mean", "m2"
            )
        ),
    ]


def main(runs: int) -> None:
    django.setup()
    from runs.models import ModelPrice
    from runs.results.files.artifacts import keep_content
    from tests.upgrade.__main__ import fill, migrate_to

    kept = keep_content("transcript", raw_output())
    name = "release_0_1_1"
    rows = json.loads(gzip.decompress(Path(__file__).with_name(f"{name}.json.gz").read_bytes()))
    apps = migrate_to(name)
    fill(apps, rows + many_runs(rows, runs, kept.sha256, kept.size))
    call_command("migrate", verbosity=0)
    project = rows[[row["model"] for row in rows].index("teams.project")]["pk"]
    ModelPrice.objects.create(
        project_id=project,
        model="m",
        input_per_million=RATES["input"],
        output_per_million=RATES["output"],
        cache_read_per_million=1.0,
        since="2020-01-01",
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["figures"]:
        django.setup()
        print(json.dumps(figures()))
    else:
        main(int(sys.argv[1]))
