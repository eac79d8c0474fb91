"""Name files of programs that evalhub doesn't read, for refusals that say what was given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from evaluators.model import Json

PROMPTFOO = "a promptfoo configuration"

_TEXTS: Mapping[str, str] = {
    "a chat of aider": r"\A\s*# aider chat started at",
    "aider's input history": r"\A\s*# \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\n\+",
}
_RESULTS: Mapping[str, str] = {
    "promptfoo's XML": r"\A\s*(?:<\?xml[^>]*>\s*)?<promptfoo",
    "promptfoo's YAML output": r"\A\s*evalId:[^\n]*\n(?:[^\n]*\n)*?results:\s*\n\s+version:",
    "promptfoo's CSV": r"\A[^\n]*\[[^\]\n]+\] [^\n]*,?\s*(?:Status|\"?\[)",
    "NUnit's results": r"\A\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*-->\s*)*<test-(?:run|results)\b",
    "TRX, the results of .NET's tests": r"\A\s*(?:<\?xml[^>]*>\s*)?<TestRun\b[^>]*TeamTest",
    "a Harbor task": r"(?m)^\[verifier\]\s*$",
}


_ADVICE: Mapping[str, str] = {
    "promptfoo's": "Write a file that is read: `promptfoo eval -o results.json`, or of a stored eval "
    "`promptfoo export eval ID -o results.json`",
    "a benchmark.json of Agent Skills": "No entry of its `runs` has a `result`: import the folder with its "
    "grading.json files",
}


def advice_for(kind: str) -> str:
    """Return what makes recognised results readable, as a sentence without its period; empty if nothing does."""
    return next((advice for start, advice in _ADVICE.items() if kind.startswith(start)), "")


def not_read(kind: str) -> str:
    """Return that files of a recognised kind aren't read, as a sentence's beginning without its period."""
    return f"not read yet: {kind}"


def recognised_session(text: str) -> str:
    """Return whose session a file holds, such as `a Gemini CLI session`, by its first line or its JSON; else empty."""
    return _find_name(text, _TEXTS) or recognised_value(_object_in(text))


def recognised_value(value: Json) -> str:
    """Return whose session a JSON object is, or is a line of; empty if unknown."""
    return _by_value(value, _SESSION_VALUES)


def _object_in(text: str) -> Json:
    for content in (text.lstrip().partition("\n")[0], text):
        if content[:1] == "{":
            with suppress(ValueError, RecursionError):
                return msgspec.json.decode(content)
    return None


def recognised_results(text: str, value: Json) -> str:
    """Return which program's results a file holds, by its text and its JSON if it has some; empty if unknown."""
    return _find_name(text, _RESULTS) or recognised_session(text) or _by_value(value, _VALUES)


def recognised_suite(value: Json) -> str:
    """Return which program's suite a decoded file is; empty if unknown."""
    return _by_value(value, _VALUES) or _by_value(value, _BESIDE_SUITES)


def _find_name(text: str, known: Mapping[str, str]) -> str:
    # Characters in which a file shows what it is.
    head = text[:8_000]
    return next((name for name, pattern in known.items() if re.search(pattern, head)), "")


def _by_value(value: Json, known: Mapping[str, Callable[[Any], bool]]) -> str:
    return next((name for name, matches in known.items() if matches(value)), "")


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and set(names) <= value.keys()


_CASES = frozenset(("evalcases", "eval_cases", "tests", "scenarios"))
_OF_AGENTV = {
    "evalcases",
    "eval_cases",
    "imports",
    "default_test",
    "evaluate_options",
    "environment",
    "target",
}
_OF_AGENTV |= {"execution", "workspace", "assert", "assertions", "threshold", "input", "input_files"}
"""Keys of AgentV that promptfoo doesn't have."""
_OF_AGENTV_TEST = {"id", "criteria", "assertions", "assert", "expected_output", "input_messages", "vars"}
"""Keys of a test by which it is AgentV's."""
_OF_PROMPTFOO = {"defaultTest", "evaluateOptions", "commandLineOptions", "derivedMetrics", "nunjucksFilters"}
_OF_PROMPTFOO |= {"outputPath", "redteam", "writeLatestResults", "providerPromptMap"}
_CODE_OF_PROMPTFOO = re.compile(r"\{\{(?!\s*env\.)[^{}]*\|[^{}]*\}\}|\{%")
"""Filters and statements of its templates; AgentV has defaults of environment variables, too."""


def is_agentv_suite(value: Any) -> bool:
    """Return whether a decoded YAML file has AgentV's cases, and nothing that only promptfoo has."""
    return (
        isinstance(value, dict)
        and (bool({"evalcases", "eval_cases"} & value.keys()) or _has_tests(value) or _has_imports(value))
        and not is_promptfoo(value)
    )


def _has_tests(value: Mapping[str, Any]) -> bool:
    """Return whether a file's `tests` are AgentV's: other programs have that key, too."""
    tests = value.get("tests")
    if "tests" not in value or not isinstance(tests, list) or not tests or _OF_AGENTV & value.keys():
        return "tests" in value
    return any(
        isinstance(one, str) or (isinstance(one, dict) and bool(_OF_AGENTV_TEST & one.keys()))
        for one in tests
    )


def _has_imports(value: Mapping[str, Any]) -> bool:
    imports = value.get("imports")
    return isinstance(imports, dict) and bool({"tests", "suites"} & imports.keys())


def is_promptfoo(value: Any) -> bool:
    """Return whether a decoded file is a configuration of promptfoo: by its own keys, assertions and templates.

    AgentV after 4.42 has prompts, providers and tests, too, but it has keys of its own, or its tests have ids.
    """
    if not isinstance(value, dict) or not (_CASES | {"prompts"}) & value.keys():
        return False
    tests = value.get("tests")
    if _OF_PROMPTFOO & value.keys() or _has_own_assertion(tests) or _has_own_assertion([value]):
        return True
    if "prompts" not in value:
        return False
    listed = [one for one in tests if isinstance(one, dict)] if isinstance(tests, list) else []
    is_named = "name" in value and isinstance(tests, str)
    is_agentv = is_named or bool(_OF_AGENTV & value.keys()) or any("id" in one for one in listed)
    return not is_agentv or _has_code(value["prompts"]) or _has_code(tests)


def _has_own_assertion(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_own_assertion, value))
    if not isinstance(value, dict):
        return False
    return value.get("type") in ("javascript", "not-javascript") or any(
        _has_own_assertion(value.get(key)) for key in ("assert", "assertions")
    )


def _has_code(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_code, value))
    if isinstance(value, dict):
        return any(map(_has_code, value.values()))
    return isinstance(value, str) and _CODE_OF_PROMPTFOO.search(value) is not None


def _is_cline(value: Any) -> bool:
    kept = _has("sessionId", "origin", "messages")(value) and _has("source")(value["origin"])
    return kept or _has("session_id", "enable_spawn")(value)


_SESSION_VALUES: Mapping[str, Callable[[Any], bool]] = {
    "a Gemini CLI session": _has("sessionId", "projectHash"),
    "a Qwen Code session": lambda value: (
        _has("parentUuid", "message")(value) and _has("parts")(value["message"])
    ),
    "a Cline session": _is_cline,
    "a Copilot CLI session": lambda value: (
        _has("type", "data")(value) and _has("copilotVersion")(value["data"])
    ),
    "a trajectory of SWE-agent or mini-swe-agent": lambda value: (
        _has("info")(value)
        and _has("model_stats")(value["info"])
        and ("trajectory" in value or "messages" in value)
    ),
    "a pi session": lambda value: _has("type", "version", "cwd")(value) and value["type"] == "session",
}


def _is_tessl(value: Any) -> bool:
    return _has("checklist", "type")(value) and str(value["type"]).endswith("checklist")


_VALUES: Mapping[str, Callable[[Any], bool]] = {
    PROMPTFOO: is_promptfoo,
    "a waza eval": _has("skill", "tasks"),
    "a Vally eval": _has("stimuli"),
    "a Tessl scenario": _is_tessl,
    "Harbor's results": lambda value: (
        _has("trial_name", "verifier_result")(value) or _has("n_total_trials", "stats")(value)
    ),
    "a benchmark.json of AgentV": lambda value: (
        _has("metadata", "run_summary")(value) and _has("eval_file")(value["metadata"])
    ),
    "a benchmark.json of Agent Skills": _has("metadata", "run_summary"),
}
"""Suites and results, by their decoded value."""
_BESIDE_SUITES: Mapping[str, Callable[[Any], bool]] = {
    "a targets file": _has("targets"),
    "a rubric": _has("criteria"),
}
