"""The services behind litellm that evalhub calls, and the variables that hold their credentials.

litellm itself guesses a model's service and searches the whole environment for a key, also by the address of a request.
evalhub names the service and the key, so that a project's requests carry nothing that the project may not use.
`tests/runs/targets/providers/test_foreign_keys.py` calls every service with a poisoned environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runs.errors import ProviderError


@dataclass(frozen=True)
class ModelService:
    """A service by litellm's prefix."""

    name: str
    keys: tuple[str, ...]
    """Variables that may hold its key, the usual one first."""
    is_optional: bool = False
    """Whether it needs no key at its own address."""
    address: str = ""
    """The worker's variable with its address, where it has none of its own: litellm would send the key to OpenAI."""
    reads_itself: bool = False
    """Whether litellm reads credentials of several values from the environment."""
    ignores_key: bool = False
    """Whether it does so although it is given a key."""
    added: tuple[str, ...] = ()
    """Variables that litellm sends, although it is given a key."""
    added_without_key: tuple[str, ...] = ()
    """Variables that litellm sends if it is given no key."""
    unchecked: tuple[str, ...] = ()
    """Variables with which, all together, litellm gets a token by a client of its own that checks no address."""


_WITH_USUAL_NAME = """
abliteration aihubmix aleph_alpha amazon_nova anthropic assemblyai baseten bytez cerebras
charity_engine chutes codestral cognition cohere compactifai cortecs crusoe darkbloom dashscope deepinfra
deepseek edenai empiriolabs empower featherless_ai friendliai galadriel github gmi groq helicone huggingface hyperbolic
inception libertai llamagate maritalk meta minimax mistral modelscope moonshot morph nadir nebius neosantara nlp_cloud
novita nscale nvidia_nim openai openrouter ovhcloud parasail pinstripes poe prism publicai qwen_ai_platform qwencloud
reka replicate sail sambanova sarvam synthetic tencent v0 vercel_ai_gateway volcengine wandb xai xiaomi_mimo zai
"""
"""Services whose key is in `<PREFIX>_API_KEY`, and nothing else is sent."""
_WITH_OTHER_NAME = {
    "ai21_chat": "AI21_API_KEY",
    "aiml": "AIML_API_KEY AIMLAPI_KEY",
    "anthropic_text": "ANTHROPIC_API_KEY",
    "apertis": "STIMA_API_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "cometapi": "COMETAPI_KEY",
    "datarobot": "DATAROBOT_API_TOKEN",
    "fireworks_ai": "FIREWORKS_AI_API_KEY FIREWORKS_API_KEY FIREWORKSAI_API_KEY",
    "gemini": "GEMINI_API_KEY GOOGLE_API_KEY",
    "lambda_ai": "LAMBDA_API_KEY",
    "meta_llama": "LLAMA_API_KEY",
    "nano-gpt": "NANOGPT_API_KEY",
    "perplexity": "PERPLEXITY_API_KEY PERPLEXITYAI_API_KEY",
    "scaleway": "SCW_SECRET_KEY",
    "scx-ai": "SCX_API_KEY",
    "tensormesh": "TENSORMESH_INFERENCE_API_KEY",
    "text-completion-codestral": "CODESTRAL_API_KEY",
    "text-completion-inception": "INCEPTION_API_KEY",
    "text-completion-openai": "OPENAI_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY TOGETHER_API_KEY TOGETHER_AI_API_KEY",
    "veniceai": "VENICE_AI_API_KEY",
}
_AT_ONES_OWN_ADDRESS = "azure_ai custom_openai heroku hosted_vllm litellm_proxy lm_studio ragflow xinference"
_ON_THE_WORKER = "docker_model_runner lemonade llamafile ollama ollama_chat"
"""Servers that litellm looks for on the worker itself, without a key."""
_AWS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")
_AZURE = ("AZURE_USERNAME", "AZURE_PASSWORD", "AZURE_CLIENT_ID")
_VERTEX = ("VERTEXAI_CREDENTIALS", "VERTEX_CREDENTIALS")
_WATSONX = ("WATSONX_TOKEN", "WATSONX_ZENAPIKEY", "WATSONX_PROJECT_ID", "WX_PROJECT_ID", "PROJECT_ID")
_OLLAMA = ("OLLAMA_API_KEY",)


def _usual(name: str) -> str:
    return name.upper().replace("-", "_")


def _all() -> Iterator[ModelService]:
    for name in _WITH_USUAL_NAME.split():
        yield ModelService(name, (f"{_usual(name)}_API_KEY",))
    for name, keys in _WITH_OTHER_NAME.items():
        yield ModelService(name, tuple(keys.split()))
    for name in _AT_ONES_OWN_ADDRESS.split():
        optional = name == "lm_studio"
        yield ModelService(
            name, (f"{_usual(name)}_API_KEY",), is_optional=optional, address=f"{_usual(name)}_API_BASE"
        )
    for name in _ON_THE_WORKER.split():
        # litellm asks Ollama and Lemonade for a model's facts with the worker's key, wherever the target leads.
        asks = {"lemonade": ("LEMONADE_API_KEY",), "ollama": _OLLAMA, "ollama_chat": _OLLAMA}
        key = "OLLAMA_API_KEY" if name == "ollama_chat" else f"{_usual(name)}_API_KEY"
        yield ModelService(name, (key,), is_optional=True, added=asks.get(name, ()))
    for name in ("azure", "azure_text"):
        yield ModelService(name, ("AZURE_API_KEY",), unchecked=_AZURE)
    for name in ("bedrock", "bedrock_mantle"):
        further = ("BEDROCK_MANTLE_API_KEY",) if name == "bedrock_mantle" else ()
        yield ModelService(
            name, ("AWS_ACCESS_KEY_ID",), reads_itself=True, added_without_key=(*_AWS, *further)
        )
    for name in ("sagemaker", "sagemaker_chat", "sagemaker_nova"):
        yield ModelService(
            name, ("AWS_ACCESS_KEY_ID",), reads_itself=True, ignores_key=True, added_without_key=_AWS
        )
    for name in ("vertex_ai", "vertex_ai_beta"):
        key = "GOOGLE_APPLICATION_CREDENTIALS"
        yield ModelService(name, (key,), reads_itself=True, ignores_key=True, added=_VERTEX)
    for name in ("watsonx", "watsonx_text"):
        yield ModelService(name, ("WATSONX_API_KEY", "WATSONX_APIKEY"), added=_WATSONX)
    yield ModelService("cloudflare", ("CLOUDFLARE_API_KEY",), added=("CLOUDFLARE_ACCOUNT_ID",))
    yield ModelService(
        "databricks", ("DATABRICKS_API_KEY",), unchecked=("DATABRICKS_CLIENT_ID", "DATABRICKS_CLIENT_SECRET")
    )
    yield ModelService(
        "gigachat", ("GIGACHAT_API_KEY",), added=("GIGACHAT_ACCESS_TOKEN", "GIGACHAT_CREDENTIALS")
    )
    yield ModelService("predibase", ("PREDIBASE_API_KEY",), added=("PREDIBASE_TENANT_ID",))
    yield ModelService(
        "sap",
        ("SAP_API_KEY",),
        added=("AICORE_CLIENT_ID", "AICORE_CLIENT_SECRET", "AICORE_SERVICE_KEY", "VCAP_SERVICES"),
    )
    yield ModelService("snowflake", ("SNOWFLAKE_API_KEY", "SNOWFLAKE_JWT"), added=("SNOWFLAKE_ACCOUNT_ID",))


SERVICES: Mapping[str, ModelService] = {
    each.name: each for each in sorted(_all(), key=lambda each: each.name)
}
"""Every service by litellm's prefix."""


def service_of(id: str) -> ModelService:
    """Return the service of a litellm id. Raises `ProviderError` (kind `configuration`) for an unknown prefix."""
    provider = id.partition("/")[0]
    if service := SERVICES.get(provider):
        return service
    raise ProviderError(
        f"The model '{id}' has the provider '{provider}', which evalhub doesn't call. Use a provider that "
        "docs/providers.md lists; for a server with OpenAI's protocol, that is 'openai' with a `base_url`.",
        kind="configuration",
    )
