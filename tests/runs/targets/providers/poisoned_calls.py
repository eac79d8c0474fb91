"""Call services of litellm in a poisoned environment, and print what would be sent; run as a program.

`python -m tests.runs.targets.providers.poisoned_calls all|some` sets every variable that litellm's code names like a credential,
`some` without those for which evalhub refuses a service. Requests end in the HTTP libraries, before any connection.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

OWN = "key-of-the-target"
ADDRESS = "http://127.0.0.1:9/v1"
MODELS = {
    "bedrock": "anthropic.claude-3-sonnet-20240229-v1:0",
    "huggingface": "org/model",
    "ragflow": "chat/some/model",
}
_CREDENTIAL = re.compile(
    "(KEY|KEY_ID|TOKEN|SECRET|CREDENTIALS?|PASSWORD|APIKEY|CLIENT_ID|USERNAME|USER|PROJECT|PROJECT_ID|SPACE_ID|"
    "TENANT_ID|VCAP_SERVICES|ORGANIZATION|ACCOUNT_ID|JWT|PAT)$"
)
_NO_CREDENTIAL = re.compile("URL|ENDPOINT|LITELLM_|DEFAULT_|DISABLE")
_OF_OTHER_LIBRARIES = ("AWS_SESSION_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HF_TOKEN")


@dataclass
class Call:
    """What one call would have sent."""

    service: str
    way: str
    address: str
    refused: str = ""
    """evalhub's sentence."""
    urls: tuple[str, ...] = ()
    sends_own: bool = False
    """Whether the target's key was sent."""
    sent: tuple[str, ...] = ()
    """Variables whose values were sent."""
    allowed: tuple[str, ...] = ()
    """Variables that the project may use."""
    connected: tuple[str, ...] = ()


def credentials() -> set[str]:
    """Return every variable that litellm's code names like a credential."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None and spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    named = set(_OF_OTHER_LIBRARIES)
    for path in (*root.rglob("*.py"), root / "llms/openai_like/providers.json"):
        named.update(re.findall(r"[\"']([A-Z][A-Z0-9_]{3,})[\"']", path.read_text(encoding="utf-8")))
    return {name for name in named if _CREDENTIAL.search(name) and not _NO_CREDENTIAL.search(name)}


class Recorder:
    """Ends requests of every HTTP library that litellm uses, and keeps them."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.connected: list[str] = []

    def keep(self, url: object, headers: Any, body: object) -> None:
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
        self.requests.append(
            (str(url), json.dumps([str(url), {k: str(v) for k, v in headers.items()}, text]))
        )

    def install(self) -> None:
        """Stand in for the HTTP libraries of this process."""
        import botocore.httpsession
        import httpx
        import requests

        def send(_: object, request: httpx.Request, **__: object) -> httpx.Response:
            self.keep(request.url, request.headers, request.read())
            return httpx.Response(401, json={"error": {"message": "no"}}, request=request)

        async def send_later(_: object, request: httpx.Request, **__: object) -> httpx.Response:
            self.keep(request.url, request.headers, await request.aread())
            return httpx.Response(401, json={"error": {"message": "no"}}, request=request)

        def send_prepared(_: object, request: Any, **__: object) -> requests.Response:
            self.keep(request.url, request.headers, request.body or "")
            response = requests.Response()
            response.status_code, response.url, response.request = 401, request.url, request
            return response

        def send_to_aws(_: object, request: Any) -> None:
            self.keep(request.url, request.headers, request.body or "")
            raise ConnectionError("no")

        httpx.Client.send = send  # type: ignore[assignment,method-assign]
        httpx.AsyncClient.send = send_later  # type: ignore[assignment,method-assign]
        requests.Session.send = send_prepared  # type: ignore[assignment,method-assign]
        botocore.httpsession.URLLib3Session.send = send_to_aws
        sys.addaudithook(self.audit)

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Keep every connection that went around the libraries."""
        if event == "socket.connect":
            self.connected.append(str(arguments[-1]))


def calls(recorder: Recorder) -> Iterator[Call]:
    """Call every service, at its own address and another, with a key of the target and with variables only."""
    from runs.targets.language_models.model_services import SERVICES

    for service in SERVICES.values():
        usual = service.keys[:1]
        everything = (*service.keys, *service.added, *service.added_without_key)
        for address in ("", ADDRESS):
            for way, key, names in (
                ("own key", OWN, ()),
                ("usual variable", "", usual),
                ("its variables", "", everything),
            ):
                allowed = tuple(name for name in names if name in os.environ)
                asked = Call(service.name, way, address, allowed=allowed)
                yield one_call(recorder, asked, key)


def calls_of_others(recorder: Recorder, litellm: Any) -> Iterator[Call]:
    """Call by every other prefix of litellm and one of nobody, at the addresses of services that litellm knows."""
    from runs.targets.language_models.model_services import SERVICES

    names = {
        str(getattr(each, "value", each))
        for each in (*litellm.provider_list, *litellm.openai_compatible_providers)
    }
    for name in sorted({*names, "foo"} - set(SERVICES)):
        for endpoint in litellm.openai_compatible_endpoints if name == "foo" else ("api.groq.com/openai/v1",):
            address = endpoint if "://" in endpoint else f"https://{endpoint}"
            yield one_call(recorder, Call(name, "other", address), OWN)


def one_call(recorder: Recorder, asked: Call, key: str) -> Call:
    """Return the call with what it sent."""
    from runs.errors import ProviderError
    from runs.sandbox.outbound import Outbound
    from runs.targets.language_models.completion import ModelFailed, ask_model
    from runs.targets.language_models.litellm import LitellmOptions
    from runs.targets.providers.access import resolve_access, with_key
    from runs.targets.providers.options import ResolvedTarget

    recorder.requests.clear()
    recorder.connected.clear()
    model = f"{asked.service}/{MODELS.get(asked.service, 'some-model')}"
    options = LitellmOptions(model=model, api_key=key or None, base_url=asked.address or None, max_retries=0)
    variables = {name: os.environ[name] for name in asked.allowed}
    try:
        target = with_key(ResolvedTarget("target", "litellm", options), variables)
        access = resolve_access(target, outbound=Outbound(loopback=True))
        ask_model(access, [{"role": "user", "content": "hi"}], timeout_seconds=10)
    except ModelFailed:
        pass  # every request is answered with 401
    except ProviderError as error:
        return replace(asked, refused=str(error))
    text = "".join(map(readable, (each for _, each in recorder.requests)))
    return replace(
        asked,
        urls=tuple(url for url, _ in recorder.requests),
        sends_own=OWN in text,
        # A host's name is in lower case.
        sent=tuple(sorted({name.upper() for name in re.findall("poison-([A-Za-z0-9_]+)", text)})),
        connected=tuple(recorder.connected),
    )


def readable(text: str) -> str:
    """Return a request with its Base64 texts decoded."""
    found = re.findall("[A-Za-z0-9+/=]{16,}", text)
    return text + "".join(decoded(each) for each in found)


def decoded(text: str) -> str:
    try:
        return base64.b64decode(f"{text.rstrip('=')}===").decode("latin1")
    except ValueError:
        return ""


def main(which: str) -> None:
    """Poison the environment, call everything and print the calls as JSON."""
    from runs.targets.language_models.model_services import SERVICES

    names = credentials()
    if which == "some":
        names -= {
            name
            for each in SERVICES.values()
            for name in (*each.added, *each.added_without_key, *each.unchecked)
        }
    os.environ.update({name: f"poison-{name}" for name in names})
    os.environ.update(
        LITELLM_LOCAL_MODEL_COST_MAP="True", AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true"
    )
    recorder = Recorder()
    recorder.install()
    from runs.targets.language_models.litellm import load_litellm

    litellm = load_litellm()
    found = [*calls(recorder), *(calls_of_others(recorder, litellm) if which == "all" else ())]
    print(json.dumps([asdict(call) for call in found]))


if __name__ == "__main__":
    main(sys.argv[1])
