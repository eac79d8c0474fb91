"""Small llm-tool-test uploads to change in one place."""

from scenarios.formats import parse_files

SHORT = "name: a\ntask: Do it.\ntarget: {binary: t}\ngates: [{type: file_exists, path: x}]\n"
CONFIG = "llm-tool-test-config.toml"
SCENARIO = """\
name: add-task
description: Adds a task.
template_folder: basic
target:
  binary: taskmgr
  command_pattern: taskmgr\\s+(\\S+)
  health_check: taskmgr --help
  version_command: taskmgr --version
  env:
    HOME_DIR: ${HOME}/x
    PORT: 8080
    DEBUG: true
task:
  prompt: Add a task.
setup:
  commands: [taskmgr init]
scripts:
  post:
    - command: ./after.sh
      timeout_secs: 5
  evaluators:
    - command: ./measure.sh
      name: size
evaluation:
  gates:
    - type: command_succeeds
      command: taskmgr doctor
      timeout_secs: 3
    - type: no_transcript_errors
  judge:
    rubric: rubrics/style.yaml
    pass_threshold: 0.7
    model: small
    when: gates_pass
    judgings: 3
  composite:
    gate_weight: 0.5
tool_matrix:
  - tool: codex
    models: [a, b]
  - tool: claude
run:
  timeout_secs: 60
  max_turns: 9
tags: [quick, tasks]
tier: 2
cost:
  max_usd: 0.5
  cache: false
"""

RUBRIC = """\
criteria:
  - id: correct
    weight: 0.6
    description: Works.
  - id: neat
    weight: 0.4
output:
  format: json
  require_fields: [scores]
"""


def upload(scenario=SCENARIO, rubric=RUBRIC, **more):
    """Return an upload of one scenario with its fixture and rubric; `more` are files by name."""
    files = {
        "add-task.yaml": scenario.encode(),
        "rubrics/style.yaml": rubric.encode(),
        "templates/basic/AGENTS.md": b"Read me.\n",
        "templates/basic/run.sh": b"#!/bin/sh\n",
    }
    return files | {
        name: content if isinstance(content, bytes) else content.encode() for name, content in more.items()
    }


def changed(old, new):
    """Return the scenario with one text replaced."""
    assert SCENARIO.count(old) == 1, f"{old!r} must stand once in the scenario"
    return SCENARIO.replace(old, new)


def read(files, **options):
    """Return the one suite of some files."""
    (suite,) = parse_files(files, name="tasks", **options)
    return suite


def read_one(files, **options):
    """Return the one scenario of some files."""
    (scenario,) = read(files, **options).scenarios
    return scenario
