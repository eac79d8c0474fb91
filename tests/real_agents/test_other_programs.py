"""Other agent programs with the tool recorded: calls and ends are those of the tool's own log, whatever they print.

Install any of them with npm or pip and name their folders of programs in EVALHUB_TEST_PROGRAMS (docs/development.md).
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from runs.engine import run_here
from runs.models import Artifact, CommandRecord, Trial
from runs.results.files.artifacts import open_stored
from runs.results.files.workspace_archive import kept_files
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.layer1.own_log import install, read_log
from tests.real_agents.real import KEY, LOOPBACK_ONLY, playing, turns
from tests.requirements import missing
from tests.runs.carrying import launch
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

PROGRAMS = [Path(each) for each in os.environ.get("EVALHUB_TEST_PROGRAMS", "").split(os.pathsep) if each]
RECIPES = Path(__file__).parents[2] / "docs/recipes"
SCENARIO = """
name: session
target: {binary: ./mt}
template_folder: repo
task: {prompt: Run the commands.}
evaluation:
  gates: [{type: no_transcript_errors}]
"""
COMMANDS = [
    "chmod +x mt; ./mt fail 2",
    "./mt help",
    "./mt ok a --tag t",
    "./mt fail 3",
    "./mt fail 3 || true",
    "./mt ok list | head -1",
]
RAN = [("fail", 2), ("help", 0), ("ok", 0), ("fail", 3), ("fail", 3), ("ok", 0)]
END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What ends a session of mini-swe-agent; other programs run it and go on."""
PI_MODELS = '{"providers": {"local": {"baseUrl": "$BASE", "api": "openai-completions", "apiKey": "k", "models": [{"id": "m"}]}}}'
REFERENCE = "${{ SCRIPTED_KEY }}"
OPENAI = {"OPENAI_API_KEY": REFERENCE, "OPENAI_BASE_URL": "{url}", "OPENAI_API_BASE": "{url}"}
GEMINI = {"GEMINI_API_KEY": REFERENCE, "GOOGLE_GEMINI_BASE_URL": "{root}"}
COPILOT = {
    "COPILOT_PROVIDER_BASE_URL": "{url}",
    "COPILOT_PROVIDER_API_KEY": REFERENCE,
    "COPILOT_MODEL": "gpt-5",
    "COPILOT_OFFLINE": "true",
}
AUTH = 'mkdir -p ~/.gemini; echo \'{"security": {"auth": {"selectedType": "gemini-api-key"}}}\' > ~/.gemini/settings.json; '
QUIET = (
    'mkdir -p ~/.qwen; echo \'{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}\''
    " > ~/.qwen/settings.json; unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy; "
)
"""Qwen Code sends requests to 127.0.0.1 through a proxy, too."""
STARTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "gemini": ("gemini", f"{AUTH}gemini --yolo --model gemini-2.5-pro --prompt {{PROMPT}}", GEMINI | {"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
    "gemini-events": (
        "gemini",
        "gemini-events {EVENTS_FILE} {OUTPUT_FILE} gemini --yolo --output-format stream-json --model gemini-2.5-pro"
        " --prompt {PROMPT}",
        GEMINI,
    ),
    "gemini-acp": (
        "gemini",
        "acp-events {EVENTS_FILE} {OUTPUT_FILE} {PROMPT} gemini --acp --yolo --model gemini-2.5-pro",
        GEMINI,
    ),
    "qwen": ("qwen", f"{QUIET}qwen --yolo --auth-type openai -m m {{PROMPT}}", OPENAI),
    "qwen-acp": ("qwen", f"{QUIET}acp-events {{EVENTS_FILE}} {{OUTPUT_FILE}} {{PROMPT}} qwen --acp --yolo --auth-type openai -m m", OPENAI),
    "copilot": ("copilot", "copilot --allow-all-tools --output-format json -p {PROMPT}", COPILOT),
    "copilot-acp": ("copilot", "acp-events {EVENTS_FILE} {OUTPUT_FILE} {PROMPT} copilot --acp --allow-all-tools", COPILOT),
    "pi": (
        "pi",
        f"mkdir -p ~/.pi/agent; echo {shlex.quote(PI_MODELS)} | sed s,.BASE,$OPENAI_BASE_URL, > ~/.pi/agent/models.json;"
        " pi --provider local --model m --mode json -p {PROMPT}",
        OPENAI | {"PI_OFFLINE": "1"},
    ),
    "cline": (
        "cline",
        "cline auth -p openai -k k -m m -b $OPENAI_BASE_URL; cline --json {PROMPT}",
        OPENAI,
    ),
    "mini": (
        "mini",
        "mini -y --exit-immediately -m openai/m -o /tmp/traj.json -t {PROMPT}",
        OPENAI | {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"},
    ),
}  # fmt: skip
pytestmark = [pytest.mark.xdist_group("trials"), pytest.mark.timeout(300)]


def played(kind: str, tmp_path: Path, settings: Any) -> Trial:
    """Run a session of a program on a `cli` target, with a scripted model, and return its trial."""
    program, template, env = STARTS[kind]
    if not any((folder / program).exists() for folder in PROGRAMS):
        missing("programs", f"{program} is in no folder of EVALHUB_TEST_PROGRAMS.")
    settings.SANDBOX_READ = [str(each) for each in (RECIPES, *(_root(folder) for folder in PROGRAMS))]
    settings.ENV_ALLOW = ["*:SCRIPTED_KEY"]
    project = make_project()
    tool = install(tmp_path, Path("/workspace/log.jsonl"))
    files = {"session.yaml": SCENARIO.encode(), "templates/repo/mt": tool.read_bytes()}
    (imported,) = import_files(Bundle("session", files), project=project, by=None)
    path = os.pathsep.join(map(str, (RECIPES, *PROGRAMS, os.environ["PATH"])))
    with playing(*turns(*COMMANDS, END, answer="All done.")) as model:
        root = model.url.removesuffix("/v1")
        own = {name: value.replace("{url}", model.url).replace("{root}", root) for name, value in env.items()}
        # cli targets take variables as they are; PATH is the command's own.
        command = f"export PATH={shlex.quote(path)}; {template}"
        target = {"name": kind, "provider": "cli", "command_template": command, "env": LOOPBACK_ONLY | own}
        target |= {"timeout_seconds": 120}
        import_targets(project, json.dumps({"targets": [target]}).encode(), "targets.yaml", by=None)
        run_here.run_here(launch(imported.version, targets=[kind]))
    return Trial.objects.get()


def _root(programs: Path) -> Path:
    """Return the folder of an installation: of node_modules/.bin, or of a virtual environment's bin."""
    return programs.parents[1] if programs.name == ".bin" else programs.parent


def logged(trial: Trial, tmp_path: Path) -> list[tuple[str, int | None]]:
    """Return the calls of the tool's own log."""
    with open_stored(Artifact.objects.get(trial=trial, name="workspace").sha256) as archive:
        kept = kept_files(archive, lambda file: file.path == "log.jsonl")
        (tmp_path / "log.jsonl").write_bytes(next(content for _, content in kept if content))
    return [(call.argv[0], call.code) for call in read_log(tmp_path / "log.jsonl")]


@pytest.mark.parametrize("kind", STARTS)
@pytest.mark.django_db(transaction=True)
def test_calls_and_ends_are_those_of_the_tools_own_log(
    kind: str, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    trial = played(kind, tmp_path, settings)
    assert (trial.run.error, trial.error) == ("", "")
    assert logged(trial, tmp_path) == RAN
    found = trial.detail["interaction"]
    assert (found["source"], found["indirect"], found["unknown_exit"]) == ("recorded", 0, 0), trial.detail[
        "notes"
    ]
    rows = CommandRecord.objects.filter(trial=trial).order_by("n").values_list("subcommand", "exit_code")
    assert list(rows) == RAN
    assert (found["total_commands"], found["error_count"], found["help_seeking"]) == (6, 3, 1)
    # The gate reads the record, not what the program says.
    assert trial.outcome == "fail"
    if kind.endswith(("-acp", "-events")):
        # By the recipe's events: `|| true` and `| head` hide the code.
        stated = analyse(trial.transcript.unpack(), Tool(binary="./mt"), completed=True)
        assert stated.total_commands == 6 and stated.error_count >= 2 and stated.unknown_exit >= 1
