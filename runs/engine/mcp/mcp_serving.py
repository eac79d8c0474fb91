"""Serve the MCP server under test to a trial's agent, through a proxy in a second sandbox, out of the agent's reach."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.model import Json
from evaluators.redaction import mask_values, mask_values_in_bytes
from evaluators.tool_use.tool import McpServer, Tool
from runs.engine.captures import list_command
from runs.engine.mcp import (
    mcp_address,
    mcp_agreement,
    mcp_connect,
    mcp_face,
    mcp_messages,
    mcp_probe,
    mcp_proxy,
    mcp_stdio,
)
from runs.engine.mcp.mcp_packages import FOLDER, cache_variables, copy_packages, only_once, stored_packages
from runs.engine.mcp.mcp_server import RECORD, plain_descriptions
from runs.engine.task import Task
from runs.engine.workspace.tool_variables import resolved_headers
from runs.engine.workspace.workspace import LocalWorkspace, TrialFolder
from runs.errors import ProviderError, RequestError
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.safe_paths import read_beneath, write_next_to_workspace
from runs.sandbox.sandbox import Sandbox
from runs.targets.providers.base import McpEndpoint, Recording

READY_SECONDS = 60.0
"""How long a server may take to answer."""
_START_SECONDS, _END_SECONDS, _POLL_SECONDS = 30.0, 15.0, 0.01
_AT_ONCE = 1 << 16
_CONFIG = "mcp.json"
_PROGRAM = (
    mcp_proxy,
    mcp_probe,
    mcp_face,
    mcp_address,
    mcp_messages,
    mcp_agreement,
    mcp_stdio,
)


@dataclass(frozen=True)
class Served:
    """The server within a trial's reach."""

    endpoint: McpEndpoint
    env: Mapping[str, str]
    """Variables for agents that read the configuration themselves."""
    end: Callable[[], None]
    """Ends server and proxy, so that the record is whole."""
    disagreement: Callable[[], str]
    """Returns that agent and server share no protocol revision, in a sentence; empty if nothing says so."""
    folder: TrialFolder
    secrets: tuple[str, ...]

    def check_agreement(self) -> None:
        """End the server. Raises `ProviderError` (kind `setup`) if the agent shares no protocol revision with it."""
        self.end()
        if why := self.disagreement():
            raise ProviderError(why, kind="setup")

    def with_record(self, recording: Recording) -> Recording:
        """End the server, and return the recording with what the proxy recorded."""
        self.end()
        try:
            content = read_beneath(self.folder.server, mcp_proxy.RECORD, limit=LARGEST_RECORD)
        except FileNotFoundError:
            content = b""
        except OSError as error:
            note = f"The record of the MCP server's calls can't be read: {error.strerror}."
            return replace(recording, notes=(*recording.notes, note))
        return replace(
            recording, logs={**recording.logs, RECORD: mask_values_in_bytes(content, self.secrets)}
        )


@contextmanager
def serve_mcp(
    task: Task, folder: TrialFolder, workspace: LocalWorkspace, env: Mapping[str, str]
) -> Iterator[Served | None]:
    """Start proxy and server, and wait until the server is ready; None for a tool that isn't an MCP server.

    `env` are the server's variables. Raises `ProviderError` (kind `setup`) with the server's standard error if it is
    not ready in time.
    """
    tool = task.spec.criteria.tool
    server = tool.mcp if tool else None
    if server is None:
        yield None
        return
    write_programs(folder.server, folder.door)
    proxy = _Proxy(task, server, folder, workspace, env)
    if tool and server.command and copy_packages(_fetch_packages(task, tool, server), folder.server):
        proxy.take_packages()
    proxy.settle(plain_descriptions(task.context.options.descriptions))
    try:
        proxy.start()
        proxy.wait_until_ready()
        yield Served(
            _endpoint(server, folder, workspace),
            {"LLM_TOOL_TEST_MCP_CONFIG": workspace.inside(folder.scratch / _CONFIG)},
            proxy.end,
            proxy.disagreement,
            folder,
            workspace.secrets,
        )
    finally:
        proxy.end()


def _fetch_packages(task: Task, tool: Tool, server: McpServer) -> Path:
    """Return the packages that the server's command fetches; they are fetched now if this machine lacks them."""
    stored = stored_packages(task.context.run.pk, tool)
    with only_once(stored) as is_missing:
        if is_missing:
            # What is wrong with the server is said when the trial starts it.
            with suppress(RequestError, ProviderError):
                list_command(task.context, tool, server, task.files)
    return stored


def write_programs(server: Path, door: Path) -> None:
    """Write the programs into new folders: the proxy's with its packages, and the agent's connection."""
    for path in (server, door):
        path.mkdir()
    for module in _PROGRAM:
        file = server.joinpath(*module.__name__.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_source(module))
    (door / "connect.py").write_bytes(_source(mcp_connect))


def _source(module: ModuleType) -> bytes:
    return Path(str(module.__file__)).read_bytes()


def _endpoint(server: McpServer, folder: TrialFolder, workspace: LocalWorkspace) -> McpEndpoint:
    """Write the configuration that agents may read, and return how they reach the server."""
    config = folder.scratch / _CONFIG
    connect = (sys.executable, "-IS", str(folder.door / "connect.py"))
    if server.url:
        around = (*connect, workspace.inside(config), "--")
        endpoint = McpEndpoint(
            server.name, url=mcp_connect.MCP_ADDRESS, around=around, readable=(folder.door,)
        )
    else:
        endpoint = McpEndpoint(server.name, command=connect, readable=(folder.door,))
    write_next_to_workspace(
        folder.scratch, _CONFIG, json.dumps(endpoint.config).encode(), "The MCP server's configuration"
    )
    return endpoint


class _Proxy:
    """The proxy's process, run by a thread that waits for its end."""

    def __init__(
        self,
        task: Task,
        server: McpServer,
        folder: TrialFolder,
        workspace: LocalWorkspace,
        env: Mapping[str, str],
    ) -> None:
        self.server = server
        self.task, self.folder, self.workspace, self.env = task, folder, workspace, env
        self._is_told_to_end = threading.Event()
        self._result: ProcessResult | None = None
        self._problem: ProviderError | None = None
        self._control: socket.socket | None = None
        self._said = b""
        """What the proxy said while the agent ran."""
        self._thread = threading.Thread(target=self._run, name="mcp-proxy", daemon=True)

    def take_packages(self) -> None:
        """Let the server use the packages in its folder, and fetch no others."""
        inside = self._sandbox().inside(self.folder.server / FOLDER)
        self.env = {**cache_variables(inside, offline=True), **self.env}

    def settle(self, descriptions: dict[str, Json]) -> None:
        """Write the proxy's settings. Raises `ProviderError` for a variable that is missing."""
        server = self.server
        place = self._sandbox().inside
        settings: dict[str, Json] = {
            "folder": place(self.folder.server),
            "door_folder": str(self.folder.door),
            "workspace": place(self.folder.workspace),
            "descriptions": descriptions,
            **(self._address(server) if server.url else {"command": server.command}),
        }
        (self.folder.server / "settings.json").write_text(json.dumps(settings))

    def _address(self, server: McpServer) -> dict[str, Json]:
        headers = resolved_headers(server, self.task.context.variables)
        return {"url": server.url, "headers": {**headers}}

    def _sandbox(self) -> Sandbox:
        containment = self.workspace.containment
        return containment.around(
            self.folder.workspace, self.folder.server, profile=AGENT, writable=(self.folder.door,)
        )

    def start(self) -> None:
        """Start the proxy and connect to it. Raises `ProviderError`."""
        self._thread.start()
        end = time.monotonic() + _START_SECONDS
        while self._control is None:
            with suppress(OSError):
                self._control = _connect(self.folder.server)
                return
            if not self._thread.is_alive() or time.monotonic() > end:
                raise self._refuse("its proxy did not start")
            time.sleep(_POLL_SECONDS)

    def _run(self) -> None:
        sandbox = self._sandbox()
        program = self.folder.server.joinpath(*mcp_proxy.__name__.split(".")).with_suffix(".py")
        words = (
            sys.executable,
            "-IS",
            sandbox.inside(program),
            sandbox.inside(self.folder.server / "settings.json"),
        )
        try:
            self._result = run_process(
                words,
                cwd=self.folder.workspace,
                env={**self.env},
                timeout_seconds=self.task.timeout_seconds + READY_SECONDS + _START_SECONDS,
                cancelled=lambda: self._is_told_to_end.is_set() or self.task.stopped(),
                limits=sandbox.limits,
                sandbox=sandbox,
            )
        except ProviderError as error:
            self._problem = error

    def wait_until_ready(self) -> None:
        """Wait until the server answers. Raises `ProviderError` (kind `setup`) with its standard error."""
        if self._control is None:
            raise self._refuse("its proxy did not start")
        self._control.settimeout(READY_SECONDS + _START_SECONDS)
        try:
            self._control.sendall(f"{READY_SECONDS:g}\n".encode())
            with self._control.makefile("rb") as answers:
                answer = json.loads(answers.readline() or b"{}")
        except OSError as error:
            answer = {"problem": f"its proxy did not answer: {error}"}
        if problem := answer.get("problem", "its proxy ended"):
            raise self._refuse(problem)

    def disagreement(self) -> str:
        """Return that agent and server share no protocol revision; empty if the proxy hasn't said so."""
        if self._control is not None and select.select([self._control], [], [], 0)[0]:
            with suppress(OSError):
                self._said += self._control.recv(_AT_ONCE)
        line, end, _ = self._said.partition(b"\n")
        return str(json.loads(line)["disagreement"]) if end else ""

    def _refuse(self, why: str) -> ProviderError:
        self.end()
        if self._problem is not None:
            return self._problem
        stderr = self._result.stderr.decode("utf-8", "replace").strip()[-1000:] if self._result else ""
        said = f" Its standard error: {mask_values(stderr, self.workspace.secrets)}" if stderr else ""
        server = self.server
        fix = "Check target.mcp." if server.url else "Run its command in the trial's workspace by hand."
        where = f" at {server.url}" if server.url else ""
        return ProviderError(f"The MCP server{where} was not ready: {why}. {fix}{said}", kind="setup")

    def end(self) -> None:
        """Let server and proxy end; kill what is left. Safe to repeat."""
        if self._control is not None:
            with suppress(OSError):
                self._control.sendall(b"end\n")
                self._control.settimeout(_END_SECONDS)
                while said := self._control.recv(_AT_ONCE):
                    self._said += said
            self._control.close()
            self._control = None
            self._thread.join(_END_SECONDS)
        self._is_told_to_end.set()
        if self._thread.is_alive():
            self._thread.join()


def _connect(folder: Path) -> socket.socket:
    """Connect to the proxy's second socket, whose path may be too long. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"/proc/self/fd/{descriptor}/{mcp_proxy.CONTROL}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(descriptor)
    return connection
