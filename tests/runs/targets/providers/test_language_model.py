"""Models as targets, through litellm over real HTTP (AgentV evaluation, Provider Integration)."""

from __future__ import annotations

import pytest

from evaluators.model import Price, Usage
from evaluators.transcripts import parse
from runs.errors import ProviderError
from runs.sandbox.outbound import Outbound
from runs.sandbox.sandbox import Containment, Policy, detect_machine
from runs.targets.language_models.language_model import LanguageModel
from runs.targets.language_models.litellm import LitellmOptions
from runs.targets.providers.access import azure_address, resolve_access, with_key
from runs.targets.providers.options import ResolvedTarget
from tests.model_server import Answer
from tests.runs.targets.providers.model_targets import CONTAINMENT, KEY, KINDS, asked, provider_of, target_of

pytestmark = pytest.mark.one_database

PATHS = {
    "azure": "/openai/deployments/gpt-4o-mini/chat/completions?api-version=2024-10-01-preview",
    "anthropic": "/v1/messages",
    "gemini": "/models/gemini-2.5-flash:generateContent",
    "litellm": "/v1/chat/completions",
}
CREDENTIALS = {
    "azure": ("api-key", KEY),
    "anthropic": ("x-api-key", KEY),
    "gemini": ("x-goog-api-key", KEY),
    "litellm": ("authorization", f"Bearer {KEY}"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_brings_back_answer_tokens_and_cost(models, kind):
    recording = provider_of(models, kind).invoke(asked())
    assert (recording.answer, recording.raw, recording.exit_code) == ("Paris.", b"Paris.", 0)
    assert recording.usage == Usage(100, 20)
    assert recording.cost_usd is not None and recording.cost_usd > 0
    assert recording.seconds > 0


@pytest.mark.parametrize("kind", KINDS)
def test_it_asks_at_the_providers_own_address_with_its_key(models, kind):
    provider_of(models, kind).invoke(asked())
    (seen,) = models.script.seen
    name, value = CREDENTIALS[kind]
    assert (seen.path, seen.headers[name]) == (PATHS[kind], value)


def test_azure_takes_another_api_version_and_deployment(models):
    provider_of(models, "azure", version="2025-01-01").invoke(asked(model="other"))
    assert models.script.seen[0].path == "/openai/deployments/other/chat/completions?api-version=2025-01-01"


@pytest.mark.parametrize(
    ("resource", "address"),
    [
        pytest.param("mine", "https://mine.openai.azure.com", id="a bare name"),
        pytest.param("mine.openai.azure.com", "https://mine.openai.azure.com", id="a host name"),
        pytest.param("https://mine.example/", "https://mine.example", id="a url"),
        pytest.param(
            "https://mine.example/openai", "https://mine.example", id="a url with the path of the service"
        ),
    ],
)
def test_azure_finds_the_address_of_a_resource(resource, address):
    assert azure_address(resource) == address


def test_temperature_length_and_thinking_go_along(models):
    provider_of(models, "anthropic", thinking_budget=1024, max_output_tokens=2048).invoke(asked())
    provider_of(models, "azure", temperature=0.2, max_output_tokens=64).invoke(asked())
    anthropic, azure = (seen.body for seen in models.script.seen)
    assert anthropic["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert anthropic["max_tokens"] == 2048
    assert (azure["temperature"], azure["max_tokens"]) == (0.2, 64)


def test_a_conversation_and_guidelines_become_a_chat(models):
    conversation = (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "tool", "content": "42"},
        {"role": "user", "content": "And now?"},
    )
    provider_of(models).invoke(asked(messages=conversation, guidelines="Use metres."))
    assert models.script.seen[0].body["messages"] == [
        {"role": "system", "content": "[[ ## Guidelines ## ]]\n\nUse metres.\n\nBe brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "@[Tool]:\n42"},
        {"role": "user", "content": "And now?"},
    ]


def test_tool_calls_of_an_answer_become_its_trace(models):
    models.script.turns = [Answer("Looking.", calls=(("search", {"q": "Paris"}),))]
    recording = provider_of(models).invoke(asked())
    transcript = parse(recording.parser, recording.raw, recording.events)
    assert [(event.name, event.input) for event in transcript.events] == [("search", {"q": "Paris"})]
    assert transcript.answer == "Looking."


def test_the_projects_price_wins_and_is_noted_with_the_cost(models):
    prices = (
        Price("gpt-4o-mini", 1.0, 2.0, since="2020-01-01"),
        Price("gpt-4o-mini", 10.0, 20.0, since="2021-01-01"),
        Price("gpt-4o-mini", 99.0, 99.0, since="2999-01-01"),
    )
    recording = provider_of(models, prices=prices).invoke(asked())
    assert recording.cost_usd == pytest.approx((100 * 10 + 20 * 20) / 1e6)
    assert recording.price is not None and recording.price.source == "project"
    assert "project's price of gpt-4o-mini since 2021-01-01: 10 USD" in recording.notes[-1]


def test_litellms_price_is_noted_with_the_cost(models):
    recording = provider_of(models).invoke(asked())
    assert recording.cost_usd == pytest.approx((100 * 0.15 + 20 * 0.6) / 1e6)
    assert recording.price is not None and recording.price.source == "litellm"
    assert "litellm's price of openai/gpt-4o-mini: 0.15 USD" in recording.notes[-1]


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        pytest.param({"model": "openai/one-of-ours"}, Answer(), id="a model without a price"),
        pytest.param({}, Answer(usage=None), id="an answer without tokens"),
    ],
)
def test_a_cost_that_is_not_known_is_none_and_not_zero(models, changes, answer):
    models.script.turns = [answer]
    assert provider_of(models, **changes).invoke(asked()).cost_usd is None


def test_a_forbidden_address_is_refused_before_sending(models):
    access = resolve_access(target_of(models), outbound=Outbound())
    with pytest.raises(ProviderError, match="EVALHUB_HTTP_ALLOW"):
        access.check_address()
    assert provider_of(models).check().available
    assert models.script.seen == []


def test_a_target_at_a_forbidden_address_is_not_available(models):
    closed = Containment(Policy("off"), detect_machine(), "/usr/bin", (), Outbound())
    provider = LanguageModel(target_of(models), closed)
    assert "EVALHUB_HTTP_ALLOW" in provider.check().sentence
    with pytest.raises(ProviderError, match="EVALHUB_HTTP_ALLOW"):
        provider.invoke(asked())
    assert models.script.seen == []


def test_an_id_without_a_provider_is_refused(models):
    with pytest.raises(ProviderError, match="such as 'openai/gpt-4o-mini'"):
        provider_of(models, model="gpt-4o-mini")


def test_a_run_may_choose_another_model_of_the_same_provider(models):
    provider = provider_of(models)
    provider.invoke(asked(model="gpt-4o"))
    provider.invoke(asked(model="openai/gpt-4.1"))
    assert [seen.body["model"] for seen in models.script.seen] == ["gpt-4o", "gpt-4.1"]


def test_a_key_is_never_sent_to_another_provider(models):
    with pytest.raises(ProviderError, match="has another provider"):
        provider_of(models).invoke(asked(model="anthropic/claude-sonnet-4-5"))
    assert models.script.seen == []


def bare(model: str, **fields: str) -> ResolvedTarget:
    return ResolvedTarget(model, "litellm", LitellmOptions(model=model, **fields))


def test_a_key_comes_from_the_variables_that_the_project_may_use():
    keyed = with_key(bare("openai/gpt-4o-mini"), {"OPENAI_API_KEY": "sk-allowed"})
    assert keyed.options.api_key == "sk-allowed"
    assert keyed.secrets == ("sk-allowed",)


def test_a_forbidden_key_is_not_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with pytest.raises(ProviderError, match=r"variable OPENAI_API_KEY.*EVALHUB_ENV_ALLOW"):
        with_key(bare("openai/gpt-4o-mini"), {})


def test_a_server_of_ones_own_needs_no_key():
    assert with_key(bare("openai/llama", base_url="http://127.0.0.1:1/v1"), {}).options.api_key == "none"


@pytest.mark.parametrize("model", ["bedrock/claude", "vertex_ai/gemini"])
def test_other_allowed_credentials_are_left_to_litellm(model):
    variables = {"AWS_ACCESS_KEY_ID": "AKIA", "GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}
    assert with_key(bare(model), variables) == bare(model)
    with pytest.raises(ProviderError, match="needs the variable"):
        with_key(bare(model), {})


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("gigachat/GigaChat", "GIGACHAT_ACCESS_TOKEN"),
        ("sap/gpt-4o", "AICORE_CLIENT_ID"),
        ("sap/gpt-4o", "VCAP_SERVICES"),
        ("watsonx/granite", "WATSONX_TOKEN"),
        ("watsonx_text/granite", "WATSONX_PROJECT_ID"),
    ],
)
def test_credentials_that_litellm_would_add_are_refused(monkeypatch, model, variable):
    target = bare(model, base_url="http://127.0.0.1:1/v1", api_key="own")
    assert with_key(target, {}) == target
    monkeypatch.setenv(variable, "of-somebody-else")
    with pytest.raises(ProviderError, match=f"worker's variable {variable}, and this project may not use it"):
        with_key(target, {})
    assert with_key(target, {variable: "of-somebody-else"}) == target


def test_a_secret_is_not_sent_by_a_client_that_checks_nothing(monkeypatch, models):
    """litellm's client for Databricks posts them with `requests` to the target's address."""
    target = bare("databricks/dbrx", base_url=models.url, api_key="own")
    assert with_key(target, {}) == target
    variables = {"DATABRICKS_CLIENT_ID": "evalhub", "DATABRICKS_CLIENT_SECRET": "s3cret-of-the-worker"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for allowed in ({}, variables):
        with pytest.raises(
            ProviderError, match=r"DATABRICKS_CLIENT_ID and DATABRICKS_CLIENT_SECRET.*to the target's address"
        ):
            LanguageModel(with_key(target, allowed), CONTAINMENT).invoke(asked())
    assert models.script.seen == []


@pytest.mark.parametrize("kind", ["azure", "litellm"])
def test_azure_is_not_called_with_a_token_for_the_workers_password(monkeypatch, models, kind):
    """litellm prefers it to the target's key."""
    changes = {"model": "azure/gpt-4o"} if kind == "litellm" else {}
    target = target_of(models, kind, **changes)
    assert with_key(target, {}) == target
    for name in ("AZURE_USERNAME", "AZURE_PASSWORD", "AZURE_CLIENT_ID"):
        monkeypatch.setenv(name, "of-the-worker")
    with pytest.raises(ProviderError, match="a token for them, to the target's address"):
        with_key(target, {})


IGNORE_KEY = [
    "sagemaker/x",
    "sagemaker_chat/x",
    "sagemaker_nova/x",
    "vertex_ai/gemini",
    "vertex_ai_beta/gemini",
]


@pytest.mark.parametrize("model", IGNORE_KEY)
def test_a_key_frees_from_no_credentials_that_litellm_uses_all_the_same(model):
    target = bare(model, base_url="http://127.0.0.1:1/v1", api_key="own")
    with pytest.raises(ProviderError, match="needs the variable"):
        with_key(target, {})
    allowed = {"AWS_ACCESS_KEY_ID": "AKIA", "GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}
    assert with_key(target, allowed) == target


@pytest.mark.parametrize(
    ("model", "variable"),
    [("bedrock/claude", "AWS_BEARER_TOKEN_BEDROCK"), ("vertex_ai/gemini", "VERTEXAI_CREDENTIALS")],
)
def test_of_a_clouds_credentials_only_allowed_ones_are_used(monkeypatch, model, variable):
    allowed = {"AWS_ACCESS_KEY_ID": "AKIA", "GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}
    monkeypatch.setenv(variable, "of-somebody-else")
    with pytest.raises(ProviderError, match=f"worker's variable {variable}, and this project may not use it"):
        with_key(bare(model), allowed)
    assert with_key(bare(model), {**allowed, variable: "of-somebody-else"}) == bare(model)


@pytest.mark.parametrize(
    "model",
    ["sagemaker/x", "sagemaker_chat/x", "bedrock/claude", "bedrock_mantle/claude", "vertex_ai/gemini"],
)
def test_an_address_frees_from_no_credentials_that_litellm_reads(model):
    with pytest.raises(ProviderError, match="needs the variable"):
        with_key(bare(model, base_url="http://127.0.0.1:1/v1"), {})
