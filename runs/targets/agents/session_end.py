"""Decide whether an agent's session was broken: by its model's service, or by a crash of its program."""

from __future__ import annotations

from dataclasses import dataclass

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.model import Transcript
from evaluators.transcripts.endings import SessionEnd, ending_of
from evaluators.transcripts.sessions.sub_agents import read_own_account
from runs.targets.providers.base import ENDED_BY_SIGNAL, Recording
from runs.targets.providers.failures import advise_on_failure, describe_failure
from runs.targets.providers.retry import RequestFailure


@dataclass(frozen=True)
class Broken:
    """Why a trial is an error, whatever its gates say: a kind (`endpoint`, `crash`) and a sentence."""

    kind: str
    sentence: str


def broken_by(recording: Recording) -> Broken | None:
    """Return what broke a session; None if it ended by itself, by a limit or by what the agent did.

    Gates have no part in it, because an error that depends on the outcome bends the pass rate.
    """
    if recording.was_stopped and not recording.timed_out:
        return None
    ending = ending_of(recording.parser, recording.raw)
    if failure := _service_failure(recording, ending):
        session = recording.program or "The session"
        names_status = failure.status is None or str(failure.status) in failure.message
        said = failure.message if names_status else describe_failure(failure)
        sentence = (
            f"{session} was cut off by its model's service: {said.rstrip('.')}. {advise_on_failure(failure)}"
        )
        return Broken("endpoint", sentence)
    return None if recording.was_stopped or not recording.program else _crash(recording, ending)


def _service_failure(recording: Recording, ending: SessionEnd | None) -> RequestFailure | None:
    if ending is not None and ending.failure:
        return RequestFailure(ending.failure[:LONGEST_ERROR], ending.status)
    repeated = recording.service_failure
    if repeated.said and not (ending and ending.answered):
        return RequestFailure(repeated.said[:LONGEST_ERROR], repeated.status)
    return None


def _crash(recording: Recording, ending: SessionEnd | None) -> Broken | None:
    signal = ENDED_BY_SIGNAL.get(recording.exit_code) if recording.exit_code is not None else None
    if signal is not None:
        sentence = f"{recording.program} crashed: {signal.name} ended it, which evalhub didn't send."
    elif ending is not None and not ending.closed and account_of(recording) is None:
        sentence = f"{recording.program} crashed: its stream has no closing event."
    else:
        return None
    printed = recording.stderr.strip()[-LONGEST_ERROR:].rstrip(".")
    printed = f" Standard error: {printed}." if printed else ""
    return Broken("crash", f"{sentence}{printed} Run it by hand to see why.")


def account_of(recording: Recording) -> Transcript | None:
    """Return a session by the agent's own file, where its program ended by itself with 0 and its stream lost the end."""
    if recording.exit_code != 0 or recording.was_cut or recording.was_stopped:
        return None
    return read_own_account(recording.parser, recording.raw, recording.logs)


def has_answered(recording: Recording) -> bool:
    """Return whether the agent's stream has its final result."""
    ending = ending_of(recording.parser, recording.raw)
    return ending is not None and ending.answered


def has_closed(recording: Recording) -> bool:
    """Return whether the agent's stream has its closing event."""
    ending = ending_of(recording.parser, recording.raw)
    return ending is not None and ending.closed
