"""Sandboxes for tests: the best that this machine offers, and each level where it works."""

from __future__ import annotations

import os

import pytest

from runs.sandbox.outbound import Outbound
from runs.sandbox.sandbox import Containment, Level, Machine, Policy, detect_machine
from runs.sandbox.target_roots import TargetRoots
from tests.requirements import missing

PATH = os.environ.get("PATH", os.defpath)


def machine_of(level: Level) -> Machine:
    """This machine as if it offered no more than a level; skips the test where it offers less."""
    here = detect_machine()
    if level is Level.BWRAP and not here.bwrap:
        missing("sandbox", "Bubblewrap does not work here: not installed, or user namespaces are forbidden.")
    if level is Level.LANDLOCK and not here.landlock:
        pytest.skip("this kernel has no Landlock")
    if level is Level.LIMITS and not here.limits:
        pytest.skip("this system sets no limits for other processes")
    return {
        Level.BWRAP: here,
        Level.LANDLOCK: Machine("", here.landlock, limits=here.limits),
        Level.LIMITS: Machine("", 0, limits=here.limits),
        Level.OFF: Machine(),
    }[level]


LOOPBACK = Outbound(loopback=True)
EVERYWHERE = TargetRoots.of(["/:rw"])


def containment(
    level: Level | None = None, policy: Policy = Policy.PREFER, outbound: Outbound = LOOPBACK
) -> Containment:
    """A containment at a level; without one, at the best of this machine. It calls the servers of the tests."""
    machine = detect_machine() if level is None else machine_of(level)
    return Containment(policy, machine, PATH, outbound=outbound, targets=EVERYWHERE)
