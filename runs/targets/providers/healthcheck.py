"""Health checks of a `cli` target (AgentV, CLI Template Configuration)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from runs.errors import ProviderError
from runs.sandbox.outbound import AddressRefused, Outbound
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.safe_walk import temporary_folders
from runs.sandbox.sandbox import Containment
from runs.targets.agents.command_template import TemplateValues, refuse_unsupported, render
from runs.targets.providers.options import TargetModel


def _require_text(template: str) -> str:
    if not template.strip():
        raise ValueError("there is no command in it")
    return refuse_unsupported(template)


Template = Annotated[str, AfterValidator(_require_text), Field(json_schema_extra={"pattern": r"\S"})]


class HttpHealthcheck(TargetModel):
    """An address that must answer 2xx."""

    type: Literal["http"]
    url: str = Field(min_length=1)
    timeout_seconds: float | None = Field(default=None, gt=0)


class CommandHealthcheck(TargetModel):
    """A command that must end with exit code 0."""

    type: Literal["command"]
    command_template: Template
    cwd: str | None = None
    timeout_seconds: float | None = Field(default=None, gt=0)


def ask_address(url: str, timeout_seconds: float, outbound: Outbound) -> str:
    """Return why an address fails, without a full stop; empty if it answers 2xx, after redirects."""
    # Imported here because it is slow and few commands need it.
    import httpx

    from runs.sandbox.outbound_http import Deadline, DeadlineExceeded, make_client

    try:
        with (
            make_client(outbound, Deadline(timeout_seconds), follow_redirects=True) as asking,
            asking.stream("GET", url) as answer,
        ):
            pass
    except AddressRefused as error:
        return str(error).rstrip(".")
    except DeadlineExceeded:
        return f"{url} does not answer within {timeout_seconds:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{url} does not answer ({error})"
    return "" if answer.is_success else f"{url} answers HTTP {answer.status_code} {answer.reason_phrase}"


def ask_command(
    template: str,
    containment: Containment,
    *,
    cwd: str | None,
    base: str,
    env: Mapping[str, str],
    timeout_seconds: float,
    readable: Sequence[Path] = (),
) -> str:
    """Return why a command fails, without a full stop; empty if it ends with exit code 0.

    It runs contained as an agent is, in an empty folder unless `cwd` names another.
    """
    command = render(template, TemplateValues(eval_id="healthcheck"))
    try:
        result = run_contained(command, containment, cwd, base, env, timeout_seconds, readable)
    except ProviderError as error:
        return str(error).rstrip(".")
    if result.exit_code == 0:
        return ""
    return result.error.rstrip(".") or f"exit code {result.exit_code}: {result.summary}"


def run_contained(
    command: str,
    containment: Containment,
    cwd: str | None,
    base: str,
    env: Mapping[str, str],
    timeout_seconds: float,
    readable: Sequence[Path] = (),
) -> ProcessResult:
    """Run a shell line contained as an agent is, in an empty folder unless `cwd` names another.

    `readable` are the folders that the target shows its commands.

    Raises `ProviderError` if it can't start.
    """
    with temporary_folders("evalhub-health-") as (workspace, scratch):
        where = containment.working_folder(cwd, workspace, base=base)
        elsewhere = None if where.is_relative_to(workspace) else where
        sandbox = containment.around(workspace, scratch, profile=AGENT, readable=readable, working=elsewhere)
        return run_process(
            command,
            cwd=where,
            env=env,
            timeout_seconds=timeout_seconds,
            limits=sandbox.limits,
            sandbox=sandbox,
        )
