"""Eval files of tool-forge: golden, labeled, regression and perturbation cases in JSON. Each file is a suite."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from evaluators.model import Json
from scenarios.formats.parsed import ParsedSuite, PositionedDocument, Problem
from scenarios.formats.upload import Format, Parsed, UploadedFiles

NAME = "tool_forge"
SEED_PLACES = ("seed-manifest.json", "evals/seed-manifest.json")
GROUPS = ("shouldRouteIdentically", "shouldRouteDifferently")
TIERS = ("golden", "labeled", "regression", "perturbation")
_CASE_KEYS = {"expect", "stubs"}


def matches(path: str, value: Json) -> bool:
    """Return whether a document is an eval file, by its name (`weather.golden.json`) or its cases."""
    if not path.lower().endswith(".json") or not isinstance(value, dict | list):
        return False
    if tier_in_name(path):
        return True
    if isinstance(value, dict):
        return any(group in value for group in GROUPS) or _contains_case(value.get("cases"))
    return _contains_case(value)


def tier_in_name(path: str) -> str:
    """Return the tier in a file's name (`weather.golden.json`), or nothing."""
    parts = posixpath.basename(path).lower().split(".")
    return next((tier for tier in TIERS if tier in parts[:-1]), "")


def _contains_case(items: Json) -> bool:
    return isinstance(items, list) and any(map(_is_case, items))


def _is_case(item: Json) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("input"), dict):
        return False
    return "message" in item["input"] or bool(_CASE_KEYS & item.keys())


def parse(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> Parsed:
    """Parse each eval file as one suite."""
    # Imported here because importing takes longer than parsing.
    from scenarios.formats.tool_forge.case_files import read_case_file

    names = upload.name_suites(documents)
    suites: list[ParsedSuite] = []
    problems: list[Problem] = []
    for document in documents:
        suite, file_problems = read_case_file(document, upload, names[document.file])
        suites.append(suite)
        problems += file_problems
    return Parsed.of(suites, problems)


def fixture_folders(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> frozenset[str]:
    """Return none: cases have no workspace."""
    return frozenset()


def companions(document: PositionedDocument) -> tuple[str, ...]:
    """Return the paths of the seed manifest, to read a single file."""
    return SEED_PLACES


FORMAT = Format(NAME, matches, parse, fixture_folders, companions)
