"""Sandbox commands: what they see, where they write, how much they use, which variables they may get.

Uses the best of three levels that the machine offers: namespaces by bubblewrap; Landlock with resource limits;
resource limits alone. Settings, such as `EVALHUB_ENV_ALLOW`, come in as values.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from runs.errors import ProviderError
from runs.sandbox import bubblewrap, filtered_network, landlock
from runs.sandbox.bubblewrap import system_folder
from runs.sandbox.egress import Allowed, Egress
from runs.sandbox.outbound import Outbound
from runs.sandbox.process_tree import GroupLimits
from runs.sandbox.profiles import AGENT, COMMAND, Caps, ProcessLimits, Profile, TargetLimits, limit_profile
from runs.sandbox.safe_paths import make_folder_beneath
from runs.sandbox.starting import Bubblewrap, Spawn, Starter
from runs.sandbox.target_roots import PathRefused, TargetRoots, Use

Rule = tuple[str, str]
"""Project and variable; `*` matches all."""

LOADER_VARIABLES = frozenset(
    (
        "BASH_ENV",
        "GCONV_PATH",
        "LOCPATH",
        "NODE_OPTIONS",
        "PERL5LIB",
        "PERL5OPT",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONUSERBASE",
        "RUBYLIB",
        "RUBYOPT",
    )
)
"""Variables that make a program load code at start."""


def refuse_loader_variables(env: Mapping[str, str]) -> None:
    """Raise `ProviderError` (kind `configuration`) for variables that make programs load code."""
    for name in env:
        if name in LOADER_VARIABLES or name.startswith(("LD_", "DYLD_", "GLIBC_")):
            raise ProviderError(
                f"The variable {name} makes programs load code, and this worker has no sandbox for it. "
                "Remove it from the scenario or target, or install bubblewrap on the worker.",
                kind="configuration",
            )


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of `project:NAME, *:NAME`. Raises `ValueError` with a sentence."""
    return tuple(_rule(part.strip()) for part in text.split(",") if part.strip())


def allowed_variables(env: Mapping[str, str], project: str, rules: Iterable[Rule]) -> dict[str, str]:
    """Return the environment variables that a project's targets and scenarios may use."""
    names = {name for owner, name in rules if owner in ("*", project)}
    return {name: value for name, value in env.items() if name in names or "*" in names}


def _rule(part: str) -> Rule:
    project, separator, name = part.partition(":")
    if not (project.strip() and separator and name.strip()):
        raise ValueError(
            f"EVALHUB_ENV_ALLOW: '{part}' is not 'project:NAME'. Write the project's name or *, a colon and the variable."
        )
    return project.strip(), name.strip()


logger = logging.getLogger(__name__)


@cache
def readable_folders(path: str, read: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders of the interpreter, the environment, PATH and settings, without nested ones."""
    folders = [Path(sys.base_prefix), Path(sys.prefix), *read]
    folders += [_with_what_it_starts(Path(name)) for name in path.split(":") if name.startswith("/")]
    further = {folder for folder in folders if _is_further(folder)}
    # Nested folders are already visible, and each mount costs time.
    return tuple(sorted(folder for folder in further if further.isdisjoint(folder.parents)))


def _with_what_it_starts(folder: Path) -> Path:
    """Version managers put shims on PATH that start programs beside their folder."""
    return folder.parent if folder.name == "shims" else folder


def _is_further(folder: Path) -> bool:
    known = folder == Path("/") or str(folder) in bubblewrap.SYSTEM or folder.is_relative_to("/usr")
    try:
        return not known and folder.is_dir()
    except OSError as error:
        logger.warning("%s on PATH or among the readable folders is left out: %s", folder, error.strerror)
        return False


HOME = bubblewrap.HOME
WORKSPACE = "/workspace"
SCRATCH = "/scratch"
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
# Not all of /proc: it shows the worker's environment.
PROC = tuple(
    f"/proc/{name}" for name in ("self", "cpuinfo", "meminfo", "stat", "filesystems", "version", "sys")
)


class Policy(StrEnum):
    """The requested sandbox (`EVALHUB_SANDBOX`)."""

    REQUIRE = "require"
    PREFER = "prefer"
    OFF = "off"


class Level(StrEnum):
    """The available level, as shown on pages and stored with runs."""

    BWRAP = "bwrap"
    LANDLOCK = "landlock"
    LIMITS = "limits"
    OFF = "off"


MEANING = {
    Level.BWRAP: "Commands run in namespaces of their own: files, processes and network of the worker are out of sight.",
    Level.LANDLOCK: "Commands reach allowed files only and have resource limits; processes of the worker are visible.",
    Level.LIMITS: "Commands have resource limits, but see the files and the network of the worker.",
    Level.OFF: "Commands run without a sandbox.",
}


@dataclass(frozen=True)
class Machine:
    """A machine's sandbox features; an empty text or 0 means missing."""

    bwrap: str = ""
    landlock: int = 0
    limits: bool = False
    """Whether a process can set another's limits."""


@cache
def detect_machine() -> Machine:
    """Detect, once per process, which sandbox features work here."""
    if sys.platform != "linux":
        return Machine()
    return Machine(bubblewrap.find_bubblewrap(), landlock.detect_landlock(), limits=True)


@dataclass(frozen=True)
class Containment:
    """How this worker contains commands and restricts its own requests."""

    policy: Policy
    machine: Machine
    path: str
    """PATH of the worker: its directories are readable, and it is the PATH of the commands."""
    read: tuple[Path, ...] = ()
    """Additional folders that a sandboxed command may read (`EVALHUB_SANDBOX_READ`)."""
    outbound: Outbound = field(default_factory=Outbound)
    """Which addresses the worker may call for targets (`EVALHUB_HTTP_ALLOW`)."""
    targets: TargetRoots = field(default_factory=TargetRoots)
    """Which paths of this machine targets may name (`EVALHUB_TARGET_ROOTS`)."""
    system_files: Path | None = None
    """Where the sandboxes' /etc is built; None mounts each entry separately, which is slower."""
    caps: Caps = field(default_factory=Caps)
    """Upper bounds for targets' limits."""
    agent: Profile = AGENT
    """Limits of setup commands and agents."""
    egress: Egress = Egress.FULL
    """What commands with a network may reach (`EVALHUB_EGRESS`)."""
    allowed: tuple[Allowed, ...] = ()
    """Additional services for `internet` (`EVALHUB_EGRESS_ALLOW`)."""
    unenforced: bool = False
    """Whether to ignore an unenforceable egress policy (`EVALHUB_EGRESS_UNENFORCED`)."""
    delegated: Path | None = None
    """Parent of the commands' control groups; None if the watchdog enforces limits."""
    worker_bytes: int | None = None
    """Total memory of this worker's commands (`EVALHUB_WORKER_MEMORY_MB`)."""

    @cached_property
    def level(self) -> Level:
        """Return the best level that policy and machine allow."""
        if self.policy is Policy.OFF or not self.machine.limits:
            return Level.OFF
        if self.machine.bwrap:
            return Level.BWRAP
        return Level.LANDLOCK if self.machine.landlock else Level.LIMITS

    @cached_property
    def problem(self) -> str:
        """Return why the policy can't be met and what to do, in a sentence; empty if it is met."""
        if self.policy is not Policy.REQUIRE or self.level in (Level.BWRAP, Level.LANDLOCK):
            return ""
        return (
            "Commands can't run on this worker: EVALHUB_SANDBOX is 'require', but neither bubblewrap nor Landlock "
            "works here. Install bubblewrap and allow user namespaces, use a kernel with Landlock, "
            "or set EVALHUB_SANDBOX to 'prefer'."
        )

    @cached_property
    def agent_problem(self) -> str:
        """Return why agents can't run here and what to do, in a sentence; empty if they can."""
        reason = self._unenforceable
        if self.problem or not reason or self.unenforced:
            return self.problem
        return (
            f"No agent may run on this worker: EVALHUB_EGRESS is '{self.egress}', and it cannot be enforced because "
            f"{reason}. Install bubblewrap, {filtered_network.PACKAGES}, set EVALHUB_EGRESS=full, or set "
            "EVALHUB_EGRESS_UNENFORCED=1 to run agents with the worker's whole network."
        )

    @cached_property
    def _unenforceable(self) -> str:
        """Return why the egress policy can't be enforced, without a full stop; empty if it can."""
        if self.egress is Egress.FULL:
            return ""
        if self.level is not Level.BWRAP:
            return "there is no bubblewrap"
        return filtered_network.filtering_problem() if self.egress is Egress.INTERNET else ""

    @cached_property
    def shared_counts(self) -> str:
        """Return why a command may take all inotify instances of the worker's user, without a full stop; empty if not."""
        if self.level is not Level.BWRAP:
            return "there is no bubblewrap" if self.level is not Level.OFF else ""
        return filtered_network.namespaces_problem(self.machine.bwrap)

    def _egress(self, *, network: bool) -> Egress:
        """Return a command's egress. Raises `ProviderError` if it can't be enforced."""
        if not network:
            return Egress.NONE
        if self.agent_problem:
            raise ProviderError(self.agent_problem, kind="configuration")
        return Egress.FULL if self._unenforceable else self.egress

    def for_target(self, options: TargetLimits) -> Containment:
        """Return the containment of a target's trials.

        Raises `ProviderError` (kind `configuration`) where the target asks for more than the operator allows.
        """
        egress = Egress(options.egress or self.egress)
        if not egress.within(self.egress):
            raise ProviderError(
                f"The target asks for egress '{egress}', and this worker allows '{self.egress}'. "
                "Remove `egress`, or ask the operator to change EVALHUB_EGRESS.",
                kind="configuration",
            )
        agent = limit_profile(AGENT, options.max_processes, options.max_memory_mb, self.caps)
        return replace(self, agent=agent, egress=egress)

    def around(
        self,
        workspace: Path,
        scratch: Path,
        *,
        profile: Profile = COMMAND,
        network: bool | None = None,
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        working: Path | None = None,
        tool: str = "",
    ) -> Sandbox:
        """Return the sandbox of a trial.

        `readable` and `writable` are seen at their own paths, and so is `working`, a folder that a target names:
        read-only unless the operator lets targets write there. `network` overrides the profile's; the egress policy
        says what it reaches. `tool` is the program under test, whose real path becomes readable. Raises `ProviderError` (kind
        `configuration`) where the policy cannot be met, and `PathRefused`.
        """
        if self.problem:
            raise ProviderError(self.problem, kind="configuration")
        program = self._program(tool)
        profile = self.agent if profile is AGENT else profile
        if working is not None and self.targets.may_write(working):
            writable = (*writable, working)
        elif working is not None:
            readable = (*readable, working)
        return Sandbox(
            containment=self,
            workspace=workspace,
            scratch=scratch,
            profile=profile,
            egress=self._egress(network=profile.network if network is None else network),
            readable=(*readable, *([program] if program else [])),
            writable=tuple(writable),
        )

    def _program(self, tool: str) -> Path | None:
        """Return the real path of a program under test outside the workspace; None if there is none.

        Raises `PathRefused` for a file that the operator does not let targets run: scenarios are authors' texts.
        """
        if "/" not in tool:
            program = shutil.which(tool, path=self.path)
            return Path(program).resolve() if program else None
        # A relative path starts from the workspace, which commands see anyway.
        if not os.path.isabs(tool) or not os.path.exists(tool):  # noqa: PTH110, PTH117 (false for any name)
            return None
        return self.targets.place(tool, Use.RUN).path

    def working_folder(
        self, cwd: str | None, start: Path, bundle: Path | None = None, *, base: str = ""
    ) -> Path:
        """Return a command's working folder: `start`, one beneath it or the bundle, or one allowed to targets.

        Raises `PathRefused`.
        """
        if not cwd:
            return start
        if base or Path(cwd).is_absolute():
            return self.targets.place(cwd, Use.WORK, base=base).path
        real, within = Path(os.path.realpath(start / cwd)), (start, *([bundle] if bundle else []))
        if not any(real.is_relative_to(os.path.realpath(each)) for each in within):
            raise PathRefused(f"'{cwd}' leads outside its starting folder. Use a path inside it.")
        return start / cwd

    def visible_folders(self) -> tuple[Path, ...] | None:
        """Return the folders of the machine that every command sees; None without a sandbox, which hides nothing."""
        if self.level not in (Level.BWRAP, Level.LANDLOCK):
            return None
        return (*map(Path, bubblewrap.SYSTEM), *self.readable_folders())

    def readable_folders(self) -> tuple[Path, ...]:
        """Return the folders outside /usr that every command may read."""
        return readable_folders(self.path, self.read)

    def etc(self) -> Path | None:
        """Return the folder mounted as /etc, None if each entry is mounted separately."""
        return system_folder(self.system_files) if self.system_files else None


@dataclass(frozen=True)
class Sandbox:
    """The sandbox of one trial's commands."""

    containment: Containment
    workspace: Path
    scratch: Path
    """Writable, outside the workspace; holds HOME and temporary files without namespaces."""
    profile: Profile
    egress: Egress
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    _places: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {str(self.workspace): WORKSPACE, str(self.scratch): SCRATCH} if self._bwrap else {}
        object.__setattr__(self, "_places", places)

    @property
    def level(self) -> Level:
        """Return the containment level as a word."""
        return self.containment.level

    @property
    def limits(self) -> ProcessLimits:
        """Return the limits for the watchdog."""
        limits = self.profile.limits((self.workspace, self.scratch), self.containment.worker_bytes)
        return replace(limits, disk_bytes=None) if self.level is Level.OFF else limits

    @property
    def _bwrap(self) -> bool:
        return self.containment.level is Level.BWRAP

    def inside(self, path: Path) -> str:
        """Return a host file's path inside the sandbox."""
        text = str(path)
        for host, seen in self._places.items():
            if text == host or text.startswith(f"{host}/"):
                return seen + text[len(host) :]
        return text

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Spawn:
        """Return the command wrapped for the sandbox; `cwd` is a host path.

        Raises `ProviderError` (kind `configuration`) for variables of the loader where they would act on the host.
        """
        full = {**self.base_env(), **env}
        if self._bwrap:
            return Spawn(tuple(argv), cwd, full, self._bubblewrap(cwd))
        if self.level is Level.LANDLOCK:
            return Spawn(
                tuple(argv), cwd, full, Starter(self._resource_limits, self._landlock_rules(), self._group)
            )
        refuse_loader_variables(env)
        through = Starter(self._resource_limits, group=self._group) if self.level is Level.LIMITS else None
        return Spawn(tuple(argv), cwd, full, through)

    @property
    def _resource_limits(self) -> Mapping[int, int]:
        return self.profile.resource_limits(own_user=self._bwrap)

    @property
    def _group(self) -> GroupLimits | None:
        parent = self.containment.delegated
        return GroupLimits(parent, self.profile.rss_bytes, self.profile.processes) if parent else None

    def base_env(self) -> dict[str, str]:
        """Return the variables of every command. Raises `ProviderError` if its home can't be made."""
        home, temporary = HOME, "/tmp"  # noqa: S108  # the sandbox's own
        # Namespaces create both for each command.
        if not self._bwrap:
            suffix = f"-{secrets.token_hex(6)}" if self.profile.fresh_home else ""
            home = str(Path.home())
            if suffix or self.level is not Level.OFF:
                home, temporary = str(self._own(f"home{suffix}")), str(self._own(f"tmp{suffix}"))
        # PATH without relative folders, which would lie in the workspace.
        return {
            "PATH": ":".join(folder for folder in self.containment.path.split(":") if folder.startswith("/")),
            "HOME": home,
            "TMPDIR": temporary,
            "LANG": "C.UTF-8",
        }

    def own_home(self) -> dict[str, str]:
        """Return variables of a home of the trial's own where the sandbox has none."""
        return {"HOME": str(self._own("home"))} if self.level is Level.OFF else {}

    def _own(self, name: str) -> Path:
        try:
            make_folder_beneath(self.scratch, name)
        except OSError as error:
            raise ProviderError(
                f"The command cannot start: its folder '{name}' beside the workspace cannot be used: "
                f"{error.strerror}. Earlier commands must not create that name.",
                kind="setup",
            ) from error
        return self.scratch / name

    def _bubblewrap(self, cwd: Path) -> Bubblewrap:
        options = bubblewrap.bwrap_options(
            network=self.egress is not Egress.NONE,
            tmp_bytes=self.profile.tmp_bytes,
            readable=(*self.containment.readable_folders(), *self.readable),
            writable={**{str(path): str(path) for path in self.writable}, **self._places},
            cwd=self.inside(cwd),
            etc=self.containment.etc(),
        )
        allowed = self.containment.allowed if self.egress is Egress.INTERNET else None
        return Bubblewrap(
            self.containment.machine.bwrap,
            options,
            nested=self.profile.nested,
            limits=self._resource_limits,
            allowed=allowed,
            filters_sockets=self.egress is not Egress.FULL,
            group=self._group,
        )

    def _landlock_rules(self) -> dict[str, Any]:
        read: list[str | Path] = [
            *bubblewrap.SYSTEM,
            *PROC,
            *self.containment.readable_folders(),
            *self.readable,
        ]
        write: list[str | Path] = [*DEVICES, self.workspace, self.scratch, *self.writable]
        return {
            "read": [*map(str, read)],
            "write": [*map(str, write)],
            "network": self.egress is not Egress.NONE,
        }
