"""A user's folder of AgentV, taken in unchanged in every way there is, and what comes out as JSON lines."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from runs.models import Target
from tests.agentv.eval_folder import put, the_run
from tests.builders import make_member, make_project
from tests.commands.calling import Called, call
from tests.model_server import Answer, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

EVAL = """\
description: Questions to a shop's clerk.
dataset: shop
execution:
  target: clerk
evalcases:
  - id: lamp
    conversation_id: prices
    expected_outcome: Names the price of the lamp, 19.50.
    input_messages:
      - role: user
        content:
          - {type: file, value: house.rules.md}
          - {type: text, value: What does a lamp cost?}
          - {type: file, value: prices.csv}
    expected_messages:
      - role: assistant
        content: A lamp costs 19.50.
        tool_calls:
          - {tool: lookup, input: {item: lamp}}
    evaluators:
      - {name: grade, type: llm_judge, prompt: judges/strict.md}
      - {name: looked, type: tool_trajectory, mode: any_order, minimums: {lookup: 1, checkout: 1}}
  - id: both
    expected_outcome: Says 61.50.
    input_messages: [{role: user, content: What do a lamp and a rug cost?}]
    evaluators:
      - {name: sum, type: code_judge, script: python3 checks/sum.py}
  - id: hang-up
    expected_outcome: It does not come to that.
    input_messages: [{role: user, content: Hang up.}]
"""
CLERK = """import json, pathlib, sys
output, prompt, guidelines, *files = sys.argv[1:]
if "Hang up" in prompt:
    sys.exit("the line is dead")
if "rug" in prompt:
    text, trace = "Together 61.50.", None
else:
    read = pathlib.Path(files[0]).read_text().split(",")[1].strip()
    text = f"A lamp costs {read}." + (" Ask again!" if "polite" in guidelines else "")
    trace = [{"type": "tool_call", "timestamp": "2026-01-01T00:00:00Z", "name": "lookup", "input": {"item": "lamp"}}]
pathlib.Path(output).write_text(json.dumps({"text": text, "trace": trace} if trace else {"text": text}))
"""
CHECK = """import json, sys
given = json.load(sys.stdin)
right = "61.50" in given["candidate_answer"] and given["candidate_trace"] is None
print(json.dumps({"score": float(right), "hits": ["The sum is right."] if right else [], "misses": []}))
"""
TARGETS = """\
targets:
  - name: clerk
    provider: cli
    commandTemplate: python3 clerk.py {OUTPUT_FILE} {PROMPT} {GUIDELINES} {FILES}
    timeoutSeconds: 20
    workers: 2
    judge_target: grader
  - name: grader
    provider: azure
    endpoint: ${{ SHOP_ENDPOINT }}
    api_key: ${{ SHOP_KEY }}
    model: gpt-4o-mini
"""
FOLDER = {
    "evals/shop.yaml": EVAL,
    "evals/.agentv.yaml": "guideline_patterns: ['**/*.rules.md']\n",
    "evals/house.rules.md": "Be polite.\n",
    "evals/prices.csv": "lamp,19.50\n",
    "evals/clerk.py": CLERK,
    "evals/checks/sum.py": CHECK,
    "evals/judges/strict.md": "Strictly: is {{ candidate_answer }} as good as {{reference_answer}}?\n",
    ".agentv/targets.yaml": TARGETS,
}
VERDICT = {"score": 0.5, "hits": ["price"], "misses": ["manners"], "reasoning": "Half of it."}
KEY = "key-of-the-shop-0123456789"


@pytest.fixture
def judge(monkeypatch):
    with serving() as server:
        monkeypatch.setenv("SHOP_ENDPOINT", server.url)
        monkeypatch.setenv("SHOP_KEY", KEY)
        server.script.answer = lambda prompt: Answer(f"Here you are: {json.dumps(VERDICT)}")
        yield server


def packed() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in FOLDER.items():
            archive.writestr(name, text)
    return stream.getvalue()


def by_page(folder: Path) -> Called:
    client = Client()
    client.force_login(make_member(make_project("default")))
    answer = client.post("/p/default/upload/", {"file": [SimpleUploadedFile("shop.zip", packed())]})
    assert answer.status_code == 200, answer.content.decode()
    return call("run_scenarios", "shop", "--now", "--json")


def as_folder(folder: Path) -> Called:
    return call("run_scenarios", str(put(folder / "mine", FOLDER)), "--now", "--json")


def as_archive(folder: Path) -> Called:
    (folder / "shop.zip").write_bytes(packed())
    return call("run_scenarios", str(folder / "shop.zip"), "--now", "--json")


def imported_before(folder: Path) -> Called:
    mine = put(folder / "mine", FOLDER)
    assert "shop v1 (new): 3 scenarios" in call("import_scenarios", str(mine)).out
    return call("run_scenarios", "shop", "--targets", str(mine / ".agentv/targets.yaml"), "--now", "--json")


@pytest.mark.parametrize("carried", [by_page, as_folder, as_archive, imported_before])
@pytest.mark.spec("agentv", "Prompts are stored, parse failures don't warn")
def test_record_evaluator_request_metadata(tmp_path, judge, settings, carried):
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    settings.STATIC_ROOT = tmp_path
    called = carried(tmp_path)
    assert called.code == 1, called.err + called.out
    lamp, both, dead = (
        json.loads(line)
        for line in call("export_run", str(the_run().pk), "--format", "jsonl").out.splitlines()
    )

    assert (lamp["eval_id"], lamp["dataset"], lamp["target"]) == ("lamp", "shop", "clerk")
    assert lamp["conversation_id"] == "prices"
    assert lamp["candidate_answer"] == "A lamp costs 19.50. Ask again!"
    assert lamp["agent_provider_request"]["guideline_paths"] == ["evals/house.rules.md"]
    assert lamp["trace_summary"]["toolCallsByName"] == {"lookup": 1}
    grade, looked, expected = lamp["evaluator_results"]
    assert (grade["score"], grade["hits"], grade["misses"]) == (0.5, ["price"], ["manners"])
    assert grade["reasoning"] == "Half of it."
    assert (looked["score"], looked["misses"]) == (0.5, ["checkout called 0 times (minimum: 1)"])
    assert (expected["type"], expected["hits"]) == ("expected_messages", ["tool_calls[0]: lookup matched"])
    assert lamp["score"] == pytest.approx(2 / 3)
    asked = grade["evaluator_provider_request"]
    assert "A lamp costs 19.50. Ask again!" in asked["userPrompt"] and "Strictly: is" in asked["userPrompt"]
    assert asked["systemPrompt"] == judge.script.seen[0].body["messages"][0]["content"]
    assert asked["userPrompt"] == judge.script.seen[0].body["messages"][1]["content"]

    assert (both["score"], both["hits"], both["candidate_answer"]) == (
        1.0,
        ["The sum is right."],
        "Together 61.50.",
    )
    assert (dead["score"], "the line is dead" in dead["error"]) == (0.0, True)
    assert [trial.outcome for trial in the_run().trial_set.order_by("position")] == ["fail", "pass", "error"]
    assert KEY not in json.dumps([target.definition for target in Target.objects.all()]) + called.out
