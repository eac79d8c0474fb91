from __future__ import annotations

import pytest

from runs.errors import ProviderError
from runs.sandbox.sandbox import allowed_variables, parse_rules
from runs.targets.definitions import define, hints_of_file, read_targets, resolve_definition
from runs.targets.entries import TargetDefinition
from runs.targets.providers.options import camel_case
from runs.targets.providers.registry import ALIASES, OPTIONS, PROVIDERS, make_provider
from scenarios.formats.parsed import Problem, ScenarioFileError
from tests.runs.containments import containment


def problems(text: str) -> list[Problem]:
    with pytest.raises(ScenarioFileError) as caught:
        read_targets(text.encode(), "targets.yaml")
    return list(caught.value.problems)


def target(**fields) -> TargetDefinition:
    return define({"name": "t", **fields})


FILE = """\
targets:
  - name: local
    provider: cli
    command_template: "sh agent.sh {PROMPT}"
    workers: 4
    judge_target: judge
  - name: judge
    provider: Azure-OpenAI
    endpoint: https://x.example
    apiKey: ${{ KEY }}
    model: gpt
"""


def test_it_reads_a_file():
    local, judge = read_targets(FILE.encode(), "targets.yaml")
    assert (local.kind, local.workers, local.judge_target, local.line) == ("cli", 4, "judge", 2)
    assert (judge.kind, judge.variables, judge.line) == ("azure", ("KEY",), 7)
    assert judge.entry["apiKey"] == "${{ KEY }}"


def test_labels_are_stored_once_and_sorted():
    assert target(provider="mock", labels=["macos", "gpu", "gpu"]).labels == ("gpu", "macos")


# fmt: off
BROKEN = [
    pytest.param(["- provider: mock"], 2, "targets/no-name", id="no name"),
    pytest.param(["- name: a"], 2, "targets/unknown-provider", id="no provider"),
    pytest.param(["- name: a", "  provider: mock", "  labels: [gpu, Mac OS]"], 4, "targets/invalid-field", id="no label"),
    pytest.param(["- name: a", "  provider: mock", "  labels: gpu"], 4, "targets/invalid-field", id="no list"),
    pytest.param(["- name: a", "  provider: mock", "  labels: ${{ GPU }}"], 4, "targets/invalid-field", id="label of a variable"),
    pytest.param(["- name: a", "  provider: mok"], 3, "targets/unknown-provider", id="unknown provider"),
    pytest.param(["- {name: a, provider: cli}"], 2, "targets/missing-field", id="no template"),
    pytest.param(["- name: a", "  provider: cli", "  command_template: ''"], 4, "targets/invalid-field", id="empty"),
    pytest.param(["- name: a", "  provider: cli", "  command_template: ' '"], 4, "targets/invalid-field", id="blank"),
    pytest.param(["- name: a", "  provider: cli", "  commandTemplate: 'x {NOPE}'"], 4, "targets/invalid-field", id="placeholder"),
    pytest.param(["- name: a", "  provider: cli", "  command_template: x", "  base_url: http://x"], 5, "targets/unused-field", id="address of a program"),
    pytest.param(["- name: a", "  provider: cli", "  command_template: x", "  colour: red"], 5, "targets/unknown-field", id="unknown field"),
    pytest.param(["- name: a", "  provider: cli", "  command_template: x", "  healthcheck: {type: ping}"], 5, "targets/invalid-field", id="health check"),
    pytest.param(["- name: a", "  provider: mock", "  workers: 0"], 4, "targets/invalid-field", id="workers"),
    pytest.param(["- name: a", "  provider: gemini", "  api_key: abc"], 4, "targets/literal-secret", id="literal key"),
    pytest.param(["- name: a", "  provider: codex", "  env:", "    MY_TOKEN: abc"], 5, "targets/literal-secret", id="literal in env"),
    pytest.param(["- name: a", "  provider: http", "  url: http://x", "  headers: ", "    X: Bearer abcdefgh12345"], 6, "targets/literal-secret", id="literal header"),
    pytest.param(["- name: a", "  provider: codex", "  env: {A: 'x ${{ B }}'}"], 4, "targets/partial-reference", id="partial"),
    pytest.param(["- {name: a, provider: mock}", "- {name: a, provider: mock}"], 3, "targets/repeated-name", id="twice"),
]
# fmt: on


@pytest.mark.parametrize(("lines", "line", "id"), BROKEN)
def test_it_refuses_what_cannot_work_with_its_line(lines, line, id):
    found = problems("targets:\n" + "".join(f"  {text}\n" for text in lines))
    assert [(problem.line, problem.id) for problem in found] == [(line, id)]
    assert found[0].what.endswith(".") and found[0].fix[-1] in ".?"


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        pytest.param({"max_retries": 2, "maxRetries": 7}, "max_retries", 2, id="snake_case first"),
        pytest.param({"maxRetries": 7, "max_retries": 2}, "max_retries", 2, id="snake_case later"),
        pytest.param({"max_retries": None, "maxRetries": 7}, "max_retries", 7, id="the other is null"),
        pytest.param({"model": "b", "deployment": "c"}, "model", "b", id="the name that is listed first"),
        pytest.param({"variant": "c", "model": None}, "model", "c", id="a later name, the first null"),
    ],
)
def test_of_two_spellings_the_first_with_a_value_counts(given, field, value):
    gemini = target(provider="gemini", api_key="${{ KEY }}", **given)
    assert gemini.fields[field] == value


def test_a_health_checks_first_spelling_with_a_value_wins():
    check = {"type": "http", "url": "http://x", "timeoutSeconds": 9, "timeout_seconds": 2}
    resolved = resolve_definition(target(provider="cli", command_template="x", healthcheck=check), {})
    assert resolved.options.as_config()["healthcheck"]["timeoutMs"] == 2000


def test_a_required_field_that_is_null_is_missing():
    with pytest.raises(ScenarioFileError, match="needs the field 'model'"):
        target(provider="anthropic", api_key="${{ KEY }}", model=None)


def test_it_names_every_problem_of_a_file():
    assert len(problems("targets:\n  - {name: a, provider: x}\n  - {name: b, provider: cli}\n")) == 2


def test_it_shows_the_form_that_a_secret_takes():
    (problem,) = problems("targets:\n  - {name: a, provider: gemini, apiKey: abc}\n")
    assert "${{ API_KEY }}" in problem.fix


def test_it_refuses_a_file_without_targets():
    assert [problem.id for problem in problems("target: x")] == ["targets/none"]


def test_an_unknown_field_is_a_lint_unless_the_target_is_a_command():
    (lint,) = target(provider="mock", respnse="hi").lints
    assert lint.lint and "'response'" in lint.fix


def test_a_recorded_answer_may_look_like_anything():
    mock = target(provider="mock", response="Bearer abcdefgh12345 ${{ X }}")
    assert resolve_definition(mock, {}).options.as_config()["response"] == "Bearer abcdefgh12345 ${{ X }}"


def test_it_resolves_references_and_remembers_the_values():
    definition = target(
        provider="cli", command_template="x", env={"KEY": "${{ SECRET_KEY }}", "PORT": 80}, args=["${{ARG}}"]
    )
    resolved = resolve_definition(definition, {"SECRET_KEY": "hunter2", "ARG": "-v"})
    assert resolved.options.env == {"KEY": "hunter2", "PORT": "80"}
    assert resolved.options.args == ("-v",)
    assert set(resolved.secrets) == {"hunter2", "-v"}


@pytest.mark.parametrize("env", [{}, {"V": " "}], ids=["missing", "blank"])
@pytest.mark.parametrize(
    "fields",
    [
        {"provider": "gemini", "api_key": "${{ V }}"},
        {"provider": "mock", "env": {"A": "${{ V }}"}},
        {"provider": "codex", "args": ["${{ V }}"]},
    ],
    ids=["required", "env", "argument"],
)
def test_it_names_a_variable_that_is_missing(fields, env):
    with pytest.raises(ProviderError, match="needs the variable V ") as caught:
        resolve_definition(target(**fields), env)
    assert caught.value.kind == "configuration"


def test_an_optional_field_without_its_variable_has_its_default():
    assert (
        resolve_definition(
            target(provider="codex", executable="${{ V }}", cwd="${{ V }}"), {}
        ).options.as_config()["executable"]
        == "codex"
    )


@pytest.mark.parametrize("model", ["", " ", "${{ NONE }}"])
def test_a_blank_model_of_gemini_is_the_default(model):
    resolved = resolve_definition(target(provider="gemini", api_key="${{ KEY }}", model=model), {"KEY": "k"})
    assert resolved.options.model == "gemini-2.5-flash"


def test_a_field_of_two_options_is_reported_once():
    with pytest.raises(ScenarioFileError) as caught:
        target(provider="azure", endpoint="x", api_key="${{ KEY }}", model="pre-${{ M }}")
    assert [problem.where for problem in caught.value.problems] == ["model"]


def test_it_refuses_a_value_that_a_variable_spoils():
    with pytest.raises(ProviderError, match="timeout_seconds"):
        resolve_definition(target(provider="mock", timeout_seconds="${{ V }}"), {"V": "soon"})


@pytest.mark.parametrize("kind", [*OPTIONS, *ALIASES])
def test_every_kind_is_known_in_either_spelling(kind):
    found = define(
        {
            "name": "t",
            "provider": kind.upper(),
            "timeoutSeconds": 3,
            **_REQUIRED.get(ALIASES.get(kind, kind), {}),
        }
    )
    assert found.kind == ALIASES.get(kind, kind)
    assert found.fields["timeout_seconds"] == 3
    assert found.lints == ()


_REQUIRED = {
    "cli": {"commandTemplate": "x"},
    "replay": {"path": "x"},
    "http": {"url": "http://x"},
    "azure": {"resource": "x", "apiKey": "${{ K }}", "model": "m"},
    "anthropic": {"apiKey": "${{ K }}", "model": "m"},
    "gemini": {"apiKey": "${{ K }}"},
    "litellm": {"model": "openai/m"},
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_kind_has_a_provider(kind):
    definition = define({"name": "t", "provider": kind, **_REQUIRED.get(kind, {})})
    provider = make_provider(resolve_definition(definition, {"K": "k"}), containment())
    assert isinstance(provider.works_in_folder, bool)
    assert set(PROVIDERS) == set(OPTIONS)


def test_only_allowed_variables_are_seen():
    rules = parse_rules("alpha:A, *:B, beta:*")
    env = {"A": "1", "B": "2", "C": "3"}
    assert allowed_variables(env, "alpha", rules) == {"A": "1", "B": "2"}
    assert allowed_variables(env, "beta", rules) == env
    assert allowed_variables(env, "gamma", ()) == {}


@pytest.mark.parametrize("text", ["NAME", ":NAME", "project:", "a:B,c"])
def test_an_invalid_rule_is_refused(text):
    with pytest.raises(ValueError, match="EVALHUB_ENV_ALLOW"):
        parse_rules(text)


@pytest.mark.spec("agentv", "Codex")
def test_fields_under_settings_count_like_those_beside_it():
    entry = {
        "provider": "codex",
        "settings": {"executable": "/opt/codex", "logDir": "logs"},
        "log_dir": "own",
    }
    codex = target(**entry)
    assert codex.fields == {"executable": "/opt/codex", "log_dir": "own"}
    assert codex.entry == {"name": "t", **entry}


@pytest.mark.parametrize(
    ("lines", "line", "id"),
    [
        pytest.param(["- name: a", "  provider: codex", "  max_retries: 2"], 4, "targets/unused-field", id="unused field"),
        pytest.param(["- name: a", "  provider: mock", "  env: {A: b}"], 4, "targets/unused-field", id="env of a double"),
        pytest.param(["- name: a", "  provider: anthropic", "  api_key: ${{ K }}", "  model: m", "  args: [x]"], 6, "targets/unused-field", id="args of a model"),
        pytest.param(["- name: a", "  provider: opencode", "  maxTurns: 2"], 4, "targets/unknown-field", id="field of another agent"),
    ],
)  # fmt: skip
def test_a_field_that_has_no_effect_is_a_hint_with_its_line(lines, line, id):
    text = "targets:\n" + "".join(f"  {text}\n" for text in lines)
    (hint,) = hints_of_file(text.encode(), "targets.yaml")
    assert (hint.line, hint.id, hint.lint) == (line, id, True)


def test_a_field_under_settings_has_its_own_line():
    text = "targets:\n  - name: a\n    provider: codex\n    settings:\n      executable: codex\n      excutable: x\n"
    (problem,) = hints_of_file(text.encode(), "targets.yaml")
    assert (problem.line, problem.where, problem.id) == (
        6,
        "targets[0].settings.excutable",
        "targets/unknown-field",
    )


RETRY = {
    "max_retries": 5,
    "initial_delay_ms": 10,
    "max_delay_ms": 20,
    "backoff_factor": 3,
    "retryable_status_codes": [418],
}


@pytest.mark.spec("agentv", "Retry fields in both spellings")
@pytest.mark.parametrize("prefix", ["", "retry_"])
@pytest.mark.parametrize("spelled", [str, camel_case], ids=["snake", "camel"])
def test_retry_fields_are_read_in_each_spelling(prefix, spelled):
    fields = {spelled(prefix + name): value for name, value in RETRY.items()}
    found = target(provider="gemini", api_key="${{ K }}", **fields)
    assert found.lints == ()
    options = resolve_definition(found, {"K": "key-1234"}).options
    assert options.retry is not None
    assert options.retry.as_config() == {
        "maxRetries": 5,
        "initialDelayMs": 10,
        "maxDelayMs": 20,
        "backoffFactor": 3,
        "retryableStatusCodes": [418],
    }


@pytest.mark.spec("agentv", "Cases at once")
@pytest.mark.parametrize("name", ["maxConcurrency", "max_concurrency"])
def test_the_most_trials_at_once_have_another_name(name):
    assert target(provider="mock", **{name: 2}).workers == 2
    assert target(provider="mock", workers=7, **{name: 2}).workers == 2


@pytest.mark.parametrize(
    ("head", "name"),
    [("label: mine\n    id: other", "mine"), ("id: other", "other"), ("name: own\n    label: mine", "own")],
)
def test_targets_of_later_agentv_versions_are_named_by_label_or_id(head, name):
    text = f"targets:\n  - {head}\n    provider: cli\n    runtime: host\n    config: {{command: 'run {{PROMPT}}', timeout_seconds: 3}}\n"
    (found,) = read_targets(text.encode(), "targets.yaml")
    assert (found.name, found.fields) == (name, {"command_template": "run {PROMPT}", "timeout_seconds": 3})


def test_another_runtime_of_a_command_is_refused():
    text = "targets:\n  - {name: a, provider: cli, runtime: docker, command: 'run {PROMPT}'}\n"
    assert [problem.what for problem in problems(text)] == ["A cli target has no field 'runtime'."]
