"""Translate a target's options into litellm's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from socket import SOCK_STREAM, gaierror, getaddrinfo
from urllib.parse import urlsplit

from evaluators.model import Json, Price
from runs.errors import ProviderError
from runs.sandbox.outbound import AddressRefused, Outbound, parse_address
from runs.targets.language_models.litellm import (
    AnthropicOptions,
    AzureOptions,
    GeminiOptions,
    LitellmOptions,
    ModelOptions,
)
from runs.targets.language_models.model_services import SERVICES, service_of
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.retry import Backoff

NO_KEY = "none"
"""Placeholder key for self-hosted servers: clients require one."""


@dataclass(frozen=True)
class ModelAccess:
    """A model with its address, key, time limit and retries."""

    name: str
    """The target's name, for messages."""
    model: str
    """The litellm id: provider, slash, model."""
    connection: Mapping[str, Json] = field(default_factory=dict)
    """Key, address and API version by litellm's names."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Parameters of every request."""
    backoff: Backoff = field(default_factory=Backoff)
    timeout_seconds: float | None = None
    prices: tuple[Price, ...] = ()
    secrets: tuple[str, ...] = ()
    outbound: Outbound = field(default_factory=Outbound)
    """Which addresses may be called, if the target sets one."""

    @property
    def provider(self) -> str:
        """Return the provider by litellm's name."""
        return self.model.partition("/")[0]

    @property
    def bare_model(self) -> str:
        """Return the model's name without its provider."""
        return self.model.partition("/")[2]

    @property
    def hint(self) -> str:
        """Return a sentence on a key that is sent unencrypted; empty if it isn't."""
        return self.outbound.hint(str(self.connection.get("api_base", "")))

    def check_address(self) -> None:
        """Raise `AddressRefused` if this worker may not call the target's address."""
        host = urlsplit(str(self.connection.get("api_base", ""))).hostname or ""
        try:
            addresses = getaddrinfo(host, None, type=SOCK_STREAM) if host else []
        except (gaierror, UnicodeError):
            # Not resolved now; the request reports it and retries.
            return
        for *_, address in addresses:
            if why := self.outbound.refusal(host, parse_address(str(address[0]))):
                raise AddressRefused(f"The target '{self.name}' can't be called: {why}")


def resolve_access(
    target: ResolvedTarget, model: str = "", *, outbound: Outbound | None = None
) -> ModelAccess:
    """Return a target's model access; `model` overrides the target's own.

    Raises `ProviderError` (kind `configuration`) for an id that names no provider.
    """
    options = target.options
    if not isinstance(options, ModelOptions):
        raise TypeError(f"{target.name} isn't a model")
    reach = _REACH[target.kind]
    id, connection = reach(options, model)
    thinking = options.thinking_budget if isinstance(options, AnthropicOptions) else None
    settings: dict[str, Json] = {
        "temperature": options.temperature,
        "max_tokens": options.max_output_tokens,
        "thinking": {"type": "enabled", "budget_tokens": thinking} if thinking else None,
    }
    return ModelAccess(
        name=target.name,
        model=_check_service(id, target.name),
        connection=connection,
        settings={name: value for name, value in settings.items() if value is not None},
        backoff=Backoff.of(options.retry),
        timeout_seconds=options.timeout_seconds,
        prices=target.prices,
        secrets=target.secrets,
        outbound=_reachable(outbound or Outbound(), connection),
    )


def _reachable(outbound: Outbound, connection: Mapping[str, Json]) -> Outbound:
    # Without a key of the target, litellm reads credentials itself.
    if connection.get("api_key") == NO_KEY:
        return outbound
    return outbound.with_key(str(connection.get("api_base", "")))


def with_key(target: ResolvedTarget, variables: Mapping[str, str]) -> ResolvedTarget:
    """Return a model's target; add the key from its service's usual variable to a `litellm` target that has none.

    litellm would search the whole environment; a project may use only its allowed variables.
    Raises `ProviderError` (kind `configuration`) naming the variable.
    """
    options = target.options
    if not isinstance(options, LitellmOptions):
        if target.kind in SERVICES:
            _refuse_unchecked(f"{target.kind}/{options.asked_model}", SERVICES[target.kind].unchecked)
        return target
    service = service_of(_check_service(options.model, target.name))
    _refuse_hidden(options.model, service.added, variables)
    _refuse_unchecked(options.model, service.unchecked)
    if service.address and not (options.base_url or os.environ.get(service.address)):
        raise ProviderError(
            f"The model '{options.model}' has no address: '{service.name}' is a server of your own. Give the target a "
            f"`base_url`, or set {service.address} on the worker.",
            kind="configuration",
        )
    if options.api_key and not service.ignores_key:
        return target
    _refuse_hidden(options.model, service.added_without_key, variables)
    key = next((value for name in service.keys if (value := variables.get(name, "").strip())), "")
    # Also for a server of one's own.
    if key and service.reads_itself:
        return target
    needs_key = not service.is_optional and (service.reads_itself or not options.base_url)
    if not key and needs_key:
        raise ProviderError(
            f"The model '{options.model}' needs the variable {service.keys[0]}, and it is not set, or this project may "
            "not use it. Set it on the worker and allow it in EVALHUB_ENV_ALLOW, or give the target an `api_key`.",
            kind="configuration",
        )
    keyed = options.model_copy(update={"api_key": key or NO_KEY})
    return replace(target, options=keyed, secrets=(*target.secrets, *([key] if key else [])))


def _refuse_hidden(model: str, names: tuple[str, ...], variables: Mapping[str, str]) -> None:
    for name in names:
        if name in os.environ and name not in variables:
            raise ProviderError(
                f"The model '{model}' would get the worker's variable {name}, and this project may not use it. "
                "Allow it in EVALHUB_ENV_ALLOW, or choose a model of another provider.",
                kind="configuration",
            )


def _refuse_unchecked(model: str, names: tuple[str, ...]) -> None:
    if names and all(os.environ.get(name) for name in names):
        raise ProviderError(
            f"The model '{model}' would send the worker's {', '.join(names[:-1])} and {names[-1]}, or a token for them, "
            "to the target's address, by a connection that isn't checked. Unset them on the worker, and give the target "
            "an `api_key`.",
            kind="configuration",
        )


def _check_service(id: str, name: str) -> str:
    """Return a model's id if it names a service that evalhub calls. Raises `ProviderError`."""
    provider, slash, model = id.partition("/")
    if not (provider and slash and model):
        raise ProviderError(
            f"The target '{name}' names the model '{id}' without a provider. Use both, such as 'openai/{id}'.",
            kind="configuration",
        )
    service_of(id)
    return id


def _connection(**given: str | None) -> dict[str, Json]:
    return {name: value for name, value in given.items() if value}


Reach = Callable[[ModelOptions, str], tuple[str, dict[str, Json]]]


def _reach_azure(options: ModelOptions, model: str) -> tuple[str, dict[str, Json]]:
    if not isinstance(options, AzureOptions):
        raise TypeError("no azure options")
    connection = _connection(
        api_key=options.api_key,
        api_base=options.base_url or azure_address(options.resource_name),
        api_version=options.version,
    )
    return f"azure/{model or options.deployment_name}", connection


def azure_address(resource: str) -> str:
    """Return the URL of an Azure resource given as a URL, host name or bare name."""
    if "://" in resource:
        return resource.rstrip("/").removesuffix("/openai")
    return f"https://{resource}" if "." in resource else f"https://{resource}.openai.azure.com"


def _reach_anthropic(options: ModelOptions, model: str) -> tuple[str, dict[str, Json]]:
    if not isinstance(options, AnthropicOptions):
        raise TypeError("no anthropic options")
    return f"anthropic/{model or options.model}", _connection(
        api_key=options.api_key, api_base=options.base_url
    )


def _reach_gemini(options: ModelOptions, model: str) -> tuple[str, dict[str, Json]]:
    if not isinstance(options, GeminiOptions):
        raise TypeError("no gemini options")
    return f"gemini/{model or options.model}", _connection(api_key=options.api_key, api_base=options.base_url)


def _reach_litellm(options: ModelOptions, model: str) -> tuple[str, dict[str, Json]]:
    if not isinstance(options, LitellmOptions):
        raise TypeError("no litellm options")
    return _same_provider(model or options.model, options.model), _connection(
        api_key=options.api_key, api_base=options.base_url
    )


def _same_provider(model: str, target_model: str) -> str:
    """Return a model's id with the target's provider; another provider would get the wrong key."""
    provider = target_model.partition("/")[0]
    if "/" in model and model.partition("/")[0] != provider:
        raise ProviderError(
            f"The target's key is for '{provider}', and the model '{model}' has another provider. "
            f"Choose a model of '{provider}', or make a target of its own for it.",
            kind="configuration",
        )
    return model if "/" in model or "/" not in target_model else f"{provider}/{model}"


_REACH: Mapping[str, Reach] = {
    "azure": _reach_azure,
    "anthropic": _reach_anthropic,
    "gemini": _reach_gemini,
    "litellm": _reach_litellm,
}
