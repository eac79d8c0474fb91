"""Proves suites of files without storing them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from evalhub.teams.access import DEFAULT_PROJECT
from evalhub.teams.models import Project
from runs.execution.proving.agents import Setting
from runs.execution.proving.prove import Scenario, prove
from runs.warehouse.seals import ScenarioSeal
from runs.worker_settings import containment, variables_of
from scenarios.formats.parsed import ParsedSuite
from scenarios.guidance import named_guidelines, suite_guidance
from scenarios.models import Suite, SuiteVersion


def prove_parsed(suite: ParsedSuite) -> Iterator[ScenarioSeal]:
    """Yield the seals of a parsed suite's scenarios, with the variables of the default project.

    Raises `RequestError` and `ProviderError` for a worker's wrong settings, and `DiskFull`.
    """
    project = Project(slug=DEFAULT_PROJECT)
    setting = Setting(
        SuiteVersion(suite=Suite(project=project), config=dict(suite.settings)),
        containment(),
        variables_of(project),
        suite_guidance(suite, named_guidelines(suite)),
        frozenset(suite.fixtures),
    )
    for spec in suite.scenarios:
        files = suite.fixtures.get(spec.worker_fixture, ())
        yield prove(Scenario(spec, partial(tuple, files), suite.solutions.get(spec.key)), setting)
