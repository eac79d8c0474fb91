"""Trials against a real HTTP endpoint on loopback, and how they are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluators.grading.assertions import Expect
from evaluators.grading.evaluate import Criteria, evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.transcripts import parse
from runs.sandbox.outbound import Outbound
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.base import Invocation, Provider, Recording
from runs.targets.providers.registry import make_provider
from tests.runs.containments import LOOPBACK, containment
from tests.runs.servers import Reply, Request, serving
from tests.runs.targets.providers.invocations import invocation_of

WEATHER = {
    "response": "Cold in Oslo.",
    "toolCalls": [{"name": "get_weather", "success": True, "durationMs": 12, "params": {"city": "Oslo"}}],
    "usage": {"inputTokens": 30, "outputTokens": 5},
    "costUsd": 0.01,
}


def provider(
    url: str, outbound: Outbound = LOOPBACK, env: dict[str, str] | None = None, **fields
) -> Provider:
    definition = define({"name": "agent", "provider": "http", "url": url, **fields})
    return make_provider(resolve_definition(definition, env or {}), containment(outbound=outbound))


def invocation(**changes: Any) -> Invocation:
    nowhere = Path("/nonexistent")
    given = {"prompt": "weather?", "key": "k", "timeout_seconds": 10.0, **changes}
    return invocation_of(workspace=nowhere, scratch=nowhere, **given)


def asked(reply: Reply | None = None, given: Invocation | None = None, **fields) -> tuple[Request, Recording]:
    reply = reply or Reply(WEATHER)
    with serving(reply) as server:
        recording = provider(server.url + "/chat", **fields).invoke(given or invocation())
    (request,) = server.requests
    return request, recording


def judged(recording: Recording, **expect: Any):
    transcript = parse(recording.parser, recording.raw, recording.events)
    evidence = TrialEvidence(
        transcript,
        answer=recording.answer if recording.answer is not None else transcript.answer,
        timed_out=recording.timed_out,
        seconds=recording.seconds,
        usage=recording.usage or transcript.usage,
    )
    return evaluate(Criteria(expect=Expect(**expect)), evidence)
