"""Asks a judge and keeps what was asked and answered, whatever comes back."""

from __future__ import annotations

import msgspec

from evaluators.evidence import Evidence
from evaluators.model import CompletionError, CompletionRequest, Judging, same_model

NO_MODEL = "The judge could not be asked: no model is connected. Choose a judge, or leave its evaluators out."


def ask(user: str, system: str, model: str, evidence: Evidence) -> Judging:
    """Return a judging with the prompts and the raw answer; `error` where the model did not answer."""
    asked = Judging(model=model, system_prompt=system, user_prompt=user)
    if evidence.complete is None:
        return msgspec.structs.replace(asked, error=NO_MODEL)
    try:
        answered = evidence.complete(CompletionRequest(user, system, model))
    except CompletionError as error:
        return msgspec.structs.replace(asked, error=str(error))
    name = answered.model or model
    same = same_model(name, evidence.model)
    warning = f"The judge {name} is the model under test, which tends to favour itself."
    return msgspec.structs.replace(
        asked,
        model=name,
        raw_answer=answered.text,
        usage=answered.usage,
        cost_usd=answered.cost_usd,
        price=answered.price,
        notes=answered.notes,
        seconds=answered.seconds,
        warnings=(warning,) if same else (),
    )
