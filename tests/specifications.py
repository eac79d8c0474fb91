"""The paragraphs of the three specifications that evalhub implements, titled in our own words, for docs/conformance.md."""

from __future__ import annotations

TITLES = {
    "llm-tool-test": "llm-tool-test: Evaluation",
    "agentv": "AgentV: Evaluation",
    "tool-forge": "tool-forge: Eval Runner Contract",
}

PARAGRAPHS: dict[str, dict[str, tuple[str, ...]]] = {
    "llm-tool-test": {
        "Layer 1": (
            "The command pattern, per scenario or for all",
            "Subcommands by the pattern's group",
            "Error, retry and help counts, iteration ratio",
            "First-try success",
            "Structured events come first",
            "The transcript as the fallback",
            "Completed: exit code 0 before the time limit",
            "The metrics as data",
        ),
        "Layer 2": (
            "Gates on commands",
            "JSON path gate and its assertions",
            "Gates on files",
            "No failed tool command",
            "Script gate",
            "Gates in a scenario file",
            "Replacements of the former gates",
            "All gates run, in order, each with a message",
            "Gates run after a time-out too",
        ),
        "Layer 3": (
            "The judge is optional",
            "Rubrics with weighted criteria of the scenario",
            "The judge's model by variable or file",
            "Recommended small judges",
            "Not the model under test",
            "The judge's reply",
            "Pass threshold",
        ),
        "Scores and outcome": (
            "Layers are reported apart",
            "Interaction informs and never decides",
            "Composite only on request, by weights",
            "Outcome by gates and judge",
            "One reason for a failure",
            "No state that waits for a review",
        ),
        "Guidance authors": (
            "Low errors and low help: clear docs, and the five patterns",
            "Comparing guidance versions",
            "Rubrics about the documentation",
        ),
        "Limits and costs": (
            "Cost from tokens and configured rates",
            "A trial's cost limit",
            "A session's turns",
            "Profiles of the settings file",
            "No metrics of one domain",
            "Significance over runs (left open there)",
            "Regressions found by themselves (left open there)",
        ),
    },
    "agentv": {
        "Running a case": (
            "A trace from the provider reaches evaluators and results",
            "Without a trace both inputs are null",
        ),
        "Judge": (
            "The judge's prompts",
            "Reading the judge's reply",
            "Prompts are stored, parse failures don't warn",
        ),
        "Providers": ("Azure OpenAI", "Anthropic", "Gemini", "VS Code", "Codex", "Mock"),
        "Concurrency": ("Cases at once", "A failing worker leaves the others"),
        "Batches": (
            "One batch for all cases, else case by case",
            "A provider without batches warns in verbose runs",
        ),
        "Evaluators and traces": (
            "Deterministic evaluators read the summary",
            "Judges see the summary on request",
        ),
        "Command templates": (
            "Rendering and running a template",
            "One health check before the first request",
            "Fields of a template",
            "Placeholders",
            "Fields of a health check",
        ),
        "Retries": ("Retry fields in both spellings", "Backoff by default", "Errors that are not retried"),
        "Guidelines": ("Patterns of .agentv.yaml", "Default patterns", "Matching of globs"),
        "Traces": ("Fields of an event", "The summary of a trace"),
        "Tool trajectory": (
            "Any order: minimum met",
            "Any order: minimum missed",
            "Any order: share of minimums",
            "In order, with others in between",
            "In order: wrong order",
            "Exact: the same calls",
            "Exact: an extra call",
            "Trajectory without a trace",
        ),
        "Expected tool calls": (
            "The call matches",
            "Another tool",
            "Another input",
            "No input expected",
            "Some of several calls",
            "Too few calls",
            "Expected calls without a trace",
        ),
        "Aggregation": ("Mean of scores, and its status",),
        "Versions after the specification": (
            "The pass rule by the key of the cases",
            "The spellings of all versions",
            "4.42.4: scores as the program gives them",
            "After 4.42: prompts, variables and targets",
            "What can't be run is refused",
            "Results of all versions",
        ),
    },
    "tool-forge": {
        "Eval files": (
            "Envelope with metadata",
            "Bare list without metadata",
            "Stubs start a conversation",
            "Most turns, 5 by default",
            "The final response is judged",
        ),
        "Agent": (
            "The message, and what is captured of the answer",
            "A call's name, success, duration and parameters",
            "Latency from sending to the complete answer",
        ),
        "Values": (
            "Where the seed manifest is",
            "Snapshot captured before the run",
            "Without a snapshot its tokens are unresolved",
            "Paths with dots and indexes",
            "Missing and null are unresolved",
            "Fields with tokens",
            "Unresolved: in responseContains, the value is skipped",
            "Unresolved: in a group, the value is removed",
            "Unresolved: in toolParams, the parameter is skipped",
            "Skipped values come with a warning",
        ),
        "Staleness": (
            "Another description warns and marks as stale",
            "A registry grown by more than half warns",
            "Another major version warns",
            "Registries are read, not executed",
        ),
        "Assertions": (
            "Their order, and the first failure ends them",
            "toolsCalled",
            "toolsAcceptable and __none__",
            "toolsNotCalled",
            "toolParams",
            "noToolErrors with stubs, routing only, and real tools",
            "responseNonEmpty",
            "responseContains, case-sensitive",
            "responseContainsAny",
            "responseNotContains",
            "responseMatches",
            "maxLatencyMs",
            "maxTokens, with a tokenizer of one's own",
            "Assertions of labeled evals only",
        ),
        "Results": (
            "EvalSuiteResult, field by field",
            "Written to disk after each run",
            "Summary for the console",
            "Regressions and new passes against a baseline",
            "The baseline from disk",
        ),
        "Configuration": (
            "Endpoint, manifest, snapshot, folder, registry, concurrency",
            "Defaults of the configuration",
            "A case that takes too long fails with timeout",
        ),
    },
}
"""Titles by specification and section; each has a marked test, or a reason in `MISSING`."""

MISSING: dict[tuple[str, str], str] = {
    ("llm-tool-test", "No metrics of one domain"): "Nothing to test: evalhub has no metric of one domain."
}
"""Why a paragraph has no test."""
