"""How a `cli` target may be asked whether it is well (AgentV, CLI Template Configuration)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from runs.providers.command_template import refuse_unsupported
from runs.providers.options import Settings
from runs.providers.outbound import AddressRefused, Outbound

Template = Annotated[str, Field(min_length=1), AfterValidator(refuse_unsupported)]


class HttpHealthcheck(Settings):
    """An address that has to answer 2xx."""

    type: Literal["http"]
    url: str = Field(min_length=1)
    timeout_seconds: float | None = Field(default=None, gt=0)


class CommandHealthcheck(Settings):
    """A command that has to end with exit code 0."""

    type: Literal["command"]
    command_template: Template
    cwd: str | None = None
    timeout_seconds: float | None = Field(default=None, gt=0)


def ask_address(url: str, timeout_seconds: float, outbound: Outbound) -> str:
    """Return why an address is not well, without a full stop; empty where it, or what it leads to, answers 2xx."""
    # Imported here, for it takes a tenth of a second that few commands need.
    import httpx

    from runs.providers.outbound_http import OutOfTime, Patience, client

    try:
        with client(outbound, Patience(timeout_seconds), follow_redirects=True) as asking:
            answer = asking.get(url)
    except AddressRefused as error:
        return str(error).rstrip(".")
    except OutOfTime:
        return f"{url} does not answer within {timeout_seconds:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{url} does not answer ({error})"
    return "" if answer.is_success else f"{url} answers HTTP {answer.status_code} {answer.reason_phrase}"
