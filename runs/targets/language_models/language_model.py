"""Use models as targets and judges: Azure OpenAI, Anthropic, Gemini and others that litellm supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluators.grading.stub_loop import ModelTurn, StubMessage
from evaluators.model import (
    Complete,
    Completion,
    CompletionError,
    CompletionRequest,
    Price,
    Usage,
    total_usage,
)
from runs.errors import ProviderError
from runs.sandbox.outbound import AddressRefused, Outbound
from runs.sandbox.sandbox import Containment
from runs.targets.language_models.batches import batching_of
from runs.targets.language_models.completion import (
    Message,
    ModelAnswer,
    ModelFailed,
    answer_as_recording,
    ask_model,
    chat_messages,
)
from runs.targets.language_models.stub_chat import ToolSchema, chat_of, schemas_of
from runs.targets.providers.access import ModelAccess, resolve_access
from runs.targets.providers.base import Availability, Batching, Invocation, Recording
from runs.targets.providers.options import ResolvedTarget

JUDGE_SECONDS = 120.0


class LanguageModel:
    """Asks a model once per trial."""

    works_in_folder = False

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        self._target = target
        self._outbound = containment.outbound
        self._access = resolve_access(target, outbound=containment.outbound)

    def check(self) -> Availability:
        """Return whether its address may be called; only the first trial shows whether the model answers."""
        try:
            self._access.check_address()
        except AddressRefused as error:
            return Availability(False, str(error))
        sentence = " ".join(filter(None, ("The first trial calls the model.", self._access.hint)))
        return Availability(True, sentence, tried=False)

    def invoke(self, invocation: Invocation) -> Recording:
        """Return the model's answer. Raises `ProviderError` (kind `endpoint`, or `timeout` without a workspace)."""
        access = self._reach(invocation)
        seconds = min(invocation.timeout_seconds, access.timeout_seconds or invocation.timeout_seconds)
        messages = chat_messages(invocation)
        try:
            answer = ask_model(
                access,
                messages,
                timeout_seconds=seconds,
                tools=schemas_of(invocation.tools),
                cancelled=invocation.cancelled,
            )
        except ModelFailed as error:
            if error.kind == "cancelled":
                return Recording(cancelled=True, notes=error.notes)
            if error.kind == "timeout" and invocation.in_workspace:
                return Recording(timed_out=True, seconds=seconds, notes=(*error.notes, str(error)))
            raise ProviderError(str(error), kind=error.kind, seconds=error.seconds) from error
        return answer_as_recording(answer)

    @property
    def batching(self) -> Batching | str:
        """Return the batch client, or why there is none."""
        return batching_of(self._access)

    def _reach(self, invocation: Invocation) -> ModelAccess:
        if invocation.model in ("", self._target.options.asked_model):
            return self._access
        return resolve_access(self._target, invocation.model, outbound=self._outbound)


def complete_through_model(target: ResolvedTarget, outbound: Outbound) -> Complete:
    """Return a function that asks a target's model as a judge. Raises `ProviderError` if its id names no provider."""
    access = resolve_access(target, outbound=outbound)

    def complete(request: CompletionRequest) -> Completion:
        try:
            return ask_model(
                access, _judge_messages(request), timeout_seconds=access.timeout_seconds or JUDGE_SECONDS
            )
        except (ModelFailed, AddressRefused) as error:
            raise CompletionError(str(error)) from error

    return complete


def _judge_messages(request: CompletionRequest) -> list[Message]:
    user: Message = {"role": "user", "content": request.user}
    return [{"role": "system", "content": request.system}, user] if request.system else [user]


@dataclass
class StubModel:
    """Yields a model's turns in a conversation over stubs and adds up their cost. Raises `ProviderError`."""

    access: ModelAccess
    tools: Sequence[ToolSchema]
    invocation: Invocation
    """Its guidelines, time limit (per turn) and cancellation apply; the prompt comes from the conversation."""
    answers: list[ModelAnswer] = field(default_factory=list)

    def __call__(self, messages: Sequence[StubMessage]) -> ModelTurn:
        """Return the model's answer to the messages so far."""
        limit = self.invocation.timeout_seconds
        try:
            answer = ask_model(
                self.access,
                chat_of(messages, self.invocation.guidelines),
                timeout_seconds=min(limit, self.access.timeout_seconds or limit),
                tools=schemas_of(self.tools),
                cancelled=self.invocation.cancelled,
            )
        except ModelFailed as error:
            raise ProviderError(str(error), kind=error.kind, seconds=error.seconds) from error
        self.answers.append(answer)
        return ModelTurn(answer.text, answer.calls, answer.usage)

    @property
    def cost_usd(self) -> float | None:
        """Cost of all turns in US dollars; None if one of them is unknown."""
        costs = [answer.cost_usd for answer in self.answers if answer.cost_usd is not None]
        return sum(costs) if costs and len(costs) == len(self.answers) else None

    @property
    def price(self) -> Price | None:
        """The price of the last turn; None if unknown."""
        return self.answers[-1].price if self.answers else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the requests, without repetitions."""
        return tuple(dict.fromkeys(note for answer in self.answers for note in answer.notes))

    @property
    def usage(self) -> Usage | None:
        """Tokens of all turns; None if none were counted."""
        return total_usage(answer.usage for answer in self.answers)


def stub_model(
    target: ResolvedTarget, tools: Sequence[ToolSchema], invocation: Invocation, outbound: Outbound
) -> StubModel:
    """Return the model of a target for a conversation over stubs."""
    return StubModel(resolve_access(target, invocation.model, outbound=outbound), tools, invocation)
