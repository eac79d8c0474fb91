"""A key leaves the machine unencrypted only to addresses that the operator lists."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

import pytest

from evaluators.model import CompletionRequest
from runs.errors import ProviderError
from runs.sandbox.outbound import AddressRefused, Outbound
from runs.sandbox.outbound_http import Deadline, make_client
from runs.targets.definitions import define, resolve_definition
from runs.targets.language_models.language_model import LanguageModel, complete_through_model
from runs.targets.providers.base import Recording
from runs.targets.providers.registry import make_provider
from tests.runs.containments import containment
from tests.runs.servers import Reply, serving
from tests.runs.targets.providers.endpoints import WEATHER, invocation
from tests.runs.targets.providers.model_targets import CONTAINMENT, KEY, asked, target_of

pytestmark = pytest.mark.one_database

PUBLIC = "93.184.216.34"
EMBEDDED = Outbound(loopback=True)
LISTED = Outbound.of(["127.0.0.1"], loopback=False)
HINT = "The key is sent to 127.0.0.1 unencrypted, by http."


class Server:
    """Where targets lead to, as `target_of` takes it."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.mark.parametrize(
    ("url", "allow", "is_refused"),
    [
        ("http://models.example/v1", [], True),
        ("HTTP://models.example/v1", [], True),
        ("https://models.example/v1", [], False),
        ("", [], False),
        ("http://models.example/v1", ["models.example"], False),
        ("http://models.example/v1", ["93.184.216.0/24"], False),
    ],
)
def test_a_public_address_is_refused_unless_it_is_listed(url, allow, is_refused):
    outbound = Outbound.of(allow, loopback=False).with_key(url)
    refusal = outbound.refusal("models.example", ip_address(PUBLIC))
    assert ("http would send the key unencrypted. Use https" in refusal) is is_refused


@pytest.mark.parametrize("kind", ["litellm", "azure", "anthropic", "gemini"])
def test_a_model_at_a_public_address_is_refused_before_sending(kind):
    target = target_of(Server(f"http://{PUBLIC}"), kind)  # type: ignore[arg-type]
    provider = LanguageModel(target, CONTAINMENT)
    assert "unencrypted. Use https" in provider.check().sentence
    with pytest.raises(ProviderError, match="unencrypted"):
        provider.invoke(asked())


def test_a_name_that_changes_its_address_is_refused_where_it_is_connected_to():
    allowed = Outbound.of(["10.0.0.0/8"], loopback=False).with_key("http://models.internal/")
    with (
        make_client(allowed, Deadline(5), resolve=lambda *_: [PUBLIC]) as calls,
        pytest.raises(AddressRefused, match="send the key unencrypted"),
    ):
        calls.get("http://models.internal/", headers={"Authorization": f"Bearer {KEY}"})


def test_a_listed_address_is_called_with_a_hint(models):
    target = target_of(models)
    provider = LanguageModel(target, replace(CONTAINMENT, outbound=LISTED))
    assert HINT in provider.check().sentence
    assert [note for note in provider.invoke(asked()).notes if HINT in note]
    assert any(
        HINT in note for note in complete_through_model(target, LISTED)(CompletionRequest(user="?")).notes
    )


@pytest.mark.parametrize(
    ("changes", "outbound"), [({}, EMBEDDED), ({"api_key": "none"}, LISTED)], ids=["embedded", "no key"]
)
def test_nothing_is_hinted_where_no_key_leaves(models, changes, outbound):
    provider = LanguageModel(target_of(models, **changes), replace(CONTAINMENT, outbound=outbound))
    assert "unencrypted" not in str(provider.invoke(asked()).notes) + provider.check().sentence


SECRET_HEADER = {"headers": {"X-Team": "${{ TEAM_TOKEN }}"}}
BY_KEY = {"api_key": "${{ TEAM_TOKEN }}"}


def endpoint(url: str, outbound: Outbound, **fields: object) -> Recording:
    definition = define({"name": "agent", "provider": "http", "url": url, **fields})
    target = resolve_definition(definition, {"TEAM_TOKEN": "token-of-the-team"})
    return make_provider(target, containment(outbound=outbound)).invoke(invocation())


@pytest.mark.parametrize("fields", [SECRET_HEADER, BY_KEY], ids=["header", "key"])
def test_an_endpoint_is_held_to_it_too(fields):
    with pytest.raises(ProviderError, match="send the key unencrypted"):
        endpoint(f"http://{PUBLIC}/chat", EMBEDDED, **fields)
    with serving(Reply(WEATHER)) as server:
        assert HINT in str(endpoint(server.url, LISTED, **fields).notes)
        assert endpoint(server.url, EMBEDDED, **fields).notes == ()
        assert endpoint(server.url, LISTED, headers={"X-Team": "red"}).notes == ()
