"""The worker's settings as values, for modules that don't import Django."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil
from django.conf import settings

from evalhub.teams.access import DEFAULT_PROJECT
from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.sandbox.egress import Allowed, Egress, parse_allowed
from runs.sandbox.outbound import Outbound
from runs.sandbox.process_tree import find_delegated_group
from runs.sandbox.profiles import Caps
from runs.sandbox.sandbox import Containment, Policy, allowed_variables, detect_machine, parse_rules
from runs.sandbox.target_roots import TargetRoots

# Where a container finds its own limit: cgroup v2, then v1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@cache
def containment() -> Containment:
    """Return how commands are contained in this process. Raises `RequestError` for a wrong EVALHUB_EGRESS_ALLOW."""
    policy = Policy(settings.SANDBOX)
    read = tuple(Path(path) for path in settings.SANDBOX_READ)
    path = os.environ.get("PATH", os.defpath)
    return Containment(
        policy,
        detect_machine(),
        path,
        read,
        read_outbound(),
        egress=Egress(settings.EGRESS),
        allowed=_egress_allow(),
        unenforced=settings.EGRESS_UNENFORCED,
        caps=Caps(settings.MAX_PROCESSES, settings.MAX_MEMORY_MB),
        delegated=find_delegated_group(),
        worker_bytes=(settings.WORKER_MEMORY_MB << 20) or memory_of_machine() * 3 // 4,
        targets=TargetRoots.of(settings.TARGET_ROOTS, path=path, never=_own_paths()),
        system_files=settings.SYSTEM_FILES_DIR,
    )


def read_outbound() -> Outbound:
    """Return which addresses this process may call. Raises `ValueError` for a wrong EVALHUB_HTTP_ALLOW."""
    return Outbound.of(settings.HTTP_ALLOW, loopback=settings.EMBEDDED)


def _egress_allow() -> tuple[Allowed, ...]:
    """Return the parsed EVALHUB_EGRESS_ALLOW. Raises `RequestError` in commands, which run no system checks."""
    try:
        return parse_allowed(settings.EGRESS_ALLOW)
    except ValueError as error:
        raise RequestError(str(error)) from error


def _own_paths() -> list[Path]:
    """Return the paths of evalhub's own data: the data directory and the SQLite file."""
    database = settings.DATABASES["default"]
    paths = [settings.DATA_DIR]
    if database["ENGINE"].endswith("sqlite3") and database["NAME"] != ":memory:":
        paths.append(Path(database["NAME"]))
    return paths


def variables_of(project: Project) -> dict[str, str]:
    """Return the environment variables that a project's targets and scenarios may use."""
    rules = parse_rules(",".join(settings.ENV_ALLOW))
    if settings.EMBEDDED:
        rules = (*rules, (DEFAULT_PROJECT, "*"))
    return allowed_variables(os.environ, project.slug, rules)


def memory_of_machine(limits: tuple[Path, ...] = _LIMITS) -> int:
    """Return the machine's memory in bytes, or the container's limit if lower."""
    total = int(psutil.virtual_memory().total)
    for path in limits:
        # "max" means no limit.
        with suppress(OSError, ValueError):
            total = min(total, int(path.read_text()))
    return total
