"""Ask a model through litellm: for providers, judges and conversations over stubs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evaluators.grading.costs import compute_cost
from evaluators.grading.stub_loop import ModelCall
from evaluators.model import Completion, Json, Price, Usage
from runs.sandbox.outbound import AddressRefused
from runs.targets.providers.access import ModelAccess
from runs.targets.providers.base import Invocation, Recording
from runs.targets.providers.prices import litellm_cost, litellm_price, price_note, project_price
from runs.targets.providers.retry import (
    Cancelled,
    RequestFailed,
    RequestFailure,
    TimeLimit,
    TimeLimitExceeded,
    advise_on_failure,
    describe_failure,
    failure_of,
    refusal_in,
    wait_within,
    with_retry,
)


def chat_messages(invocation: Invocation) -> list[Message]:
    """Return a task as a chat: its conversation, else its prompt, with guidelines in the system message.

    Leading system messages become one. Later messages of other roles become the assistant's, with the role in
    the first line, because APIs reject a tool's message without its call.
    """
    messages = list(invocation.spec.messages) or [{"role": "user", "content": invocation.prompt}]
    leading: list[str] = (
        [f"[[ ## Guidelines ## ]]\n\n{invocation.guidelines}"] if invocation.guidelines else []
    )
    while messages and messages[0]["role"] == "system":
        leading.append(str(messages.pop(0)["content"]))
    system: list[Message] = [{"role": "system", "content": "\n\n".join(leading)}] if leading else []
    return system + [_message(each) for each in messages]


def _message(message: Json) -> Message:
    role, content = str(message["role"]), message["content"]
    if role in ("user", "assistant"):
        return {"role": role, "content": content}
    return {"role": "assistant", "content": f"@[{role.capitalize()}]:\n{content}"}


def answer_as_recording(answer: ModelAnswer) -> Recording:
    """Return a model's answer as a recording; tool calls become structured events."""
    lines = "\n".join(json.dumps(line, ensure_ascii=False) for line in _call_lines(answer.calls))
    return Recording(
        raw=answer.text.encode("utf-8", "replace"),
        events=lines.encode("utf-8", "replace") or None,
        answer=answer.text,
        exit_code=0,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        price=answer.price,
        seconds=answer.seconds,
        notes=answer.notes,
    )


def _call_lines(calls: Sequence[ModelCall]) -> Iterator[dict[str, Json]]:
    for call in calls:
        yield {"type": "tool_call", "id": call.id, "name": call.name, "input": call.input}


T = TypeVar("T")

Message = Mapping[str, Json]
"""A message of OpenAI's chat API."""


class ModelAnswer(Completion, frozen=True):
    """A model's answer, its cost, and notes on its attempts; `model` is its litellm id."""

    calls: tuple[ModelCall, ...] = ()


class ModelFailed(Exception):
    """A model couldn't be asked or didn't answer; the message says why and what to do, without secrets.

    `kind` is endpoint, timeout (nothing was answered within the time limit) or cancelled; `status` is that of HTTP
    where one came back; `seconds` is the time over all attempts.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        failure: RequestFailure,
        seconds: float | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = failure.status
        self.seconds = seconds
        self.notes = notes


class OnlyOnce(Exception):
    """A request that must not be repeated was lost, or its response was."""


@dataclass
class Asking:
    """A request to a model, retried by its target's settings; every failed attempt is noted."""

    access: ModelAccess
    patience: TimeLimit
    repeats_lost: bool = True
    """Whether to retry a request with an unknown outcome."""
    notes: list[str] = field(default_factory=list)
    last: RequestFailure = field(default_factory=RequestFailure)
    attempts: int = 0

    def repeated(self, call: Callable[[Any], T]) -> T:
        """Return the result of `call` with litellm, retried where that helps.

        Raises `ModelFailed`, and `AddressRefused` before anything is sent.
        """
        from runs.targets.language_models.litellm import call_within, load_litellm

        self.access.check_address()
        litellm = load_litellm()
        # The first request of a process includes the import, which isn't the model's time.
        self.patience.begin()
        try:
            return with_retry(
                lambda: self._once(lambda: call_within(self.access.outbound, lambda: call(litellm))),
                self.access.backoff,
                self._wait,
            )
        except RequestFailed as error:
            late = error.failure.unanswered and self.patience.left <= 0
            raise self._failure("timeout" if late else "endpoint") from error
        except OnlyOnce as error:
            raise self._failure("endpoint") from error
        except TimeLimitExceeded as error:
            raise self._out_of_time() from error
        except Cancelled as error:
            raise self._failure("cancelled") from error

    def _once(self, call: Callable[[], T]) -> T:
        self.attempts += 1
        try:
            return wait_within(call, self.patience)
        except (Cancelled, TimeLimitExceeded):
            raise
        except Exception as error:
            # Broad because litellm raises exceptions of a dozen libraries; all of them are failed requests.
            if refused := refusal_in(error):
                raise AddressRefused(f"The target '{self.access.name}' can't be called: {refused}") from error
            self.last = failure_of(error, self.access.secrets)
            self.notes.append(f"Attempt {self.attempts} failed: {describe_failure(self.last)}.")
            if self.last.network and not self.repeats_lost:
                raise OnlyOnce from error
            raise RequestFailed(self.last) from error

    def _wait(self, seconds: float) -> None:
        self.patience.sleep(seconds)
        self.notes[-1] += f" Asked again after {seconds:.1f} s."

    def _out_of_time(self) -> ModelFailed:
        """Return a timeout if nothing was answered; a service that did answer, with a failure, is to blame itself."""
        last, limit = self.last, f"the time limit of {self.patience.seconds:g} s"
        is_waiting = self.attempts == len(self.notes)
        if last.status is None and (not is_waiting or last.unanswered):
            return self._failure("timeout")
        if not is_waiting:
            why = f"The next attempt had no answer within {limit}."
        elif last.retry_after_seconds:
            why = f"It asks to wait {last.retry_after_seconds:g} s (Retry-After), longer than {limit} allows."
        else:
            why = f"The next attempt would be later than {limit} allows."
        return self._failure("endpoint", f" {why}")

    def _failure(self, kind: str, why_no_more: str = "") -> ModelFailed:
        name, notes = self.access.name, tuple(self.notes)
        tries = f" after {self.attempts} attempts" if self.attempts > 1 else ""
        last_failure = (
            f" The last attempt failed: {describe_failure(self.last)}." if self.last.message else ""
        )
        if kind == "cancelled":
            sentence = f"The request to the model of '{name}' was stopped: the run was cancelled."
        elif kind == "timeout":
            limit = f"{self.patience.seconds:g} s"
            sentence = f"The model of '{name}' did not answer within {limit}{tries}.{last_failure} Raise `timeout_seconds`."
        else:
            took = f" in {self.patience.passed:.1f} s" if why_no_more else ""
            said = f"{describe_failure(self.last)}.{why_no_more} {advise_on_failure(self.last)}"
            sentence = f"The model of '{name}' did not answer{tries}{took}: {said}"
        return ModelFailed(sentence, kind=kind, failure=self.last, seconds=self.patience.passed, notes=notes)


def ask_model(
    access: ModelAccess,
    messages: Sequence[Message],
    *,
    timeout_seconds: float,
    tools: Sequence[Mapping[str, Json]] = (),
    cancelled: Callable[[], bool] = lambda: False,
) -> ModelAnswer:
    """Ask a model and return its answer; the time limit covers all attempts.

    Raises `ModelFailed` and `AddressRefused`.
    `tools` are schemas as OpenAI's chat has them.
    """
    asking = Asking(access, TimeLimit(timeout_seconds, cancelled))

    def request(litellm: Any) -> Any:
        return litellm.completion(
            model=access.model,
            # Otherwise litellm guesses, and takes the worker's key of the service that it guesses.
            custom_llm_provider=access.provider,
            messages=[dict(message) for message in messages],
            timeout=max(asking.patience.left, 0.01),
            # evalhub retries itself, so that every attempt is noted.
            num_retries=0,
            max_retries=0,
            **access.connection,
            **access.settings,
            **tool_parameters(tools),
        )

    response = asking.repeated(request)
    return _answer(access, response, asking)


def tool_parameters(tools: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return litellm's parameters for tools; empty without tools, because litellm would look for MCP's package."""
    return {"tools": list(tools), "_skip_mcp_handler": True} if tools else {}


def _answer(access: ModelAccess, response: Any, asking: Asking) -> ModelAnswer:
    choice = response.choices[0]
    usage = usage_of_answer(getattr(response, "usage", None))
    cost, price = price_of_answer(access, usage, response=response)
    notes = list(asking.notes)
    if choice.finish_reason not in ("stop", "tool_calls", "function_call", None):
        notes.append(f"The model stopped because of '{choice.finish_reason}'.")
    return ModelAnswer(
        text=choice.message.content or "",
        model=access.model,
        calls=calls_of(choice.message.tool_calls or (), notes),
        usage=usage,
        cost_usd=cost,
        price=price,
        seconds=asking.patience.passed,
        notes=(*notes, *filter(None, [access.hint, price_note(price) if price else ""])),
        cut_off=choice.finish_reason == "length",
    )


def usage_of_answer(usage: Any) -> Usage | None:
    """Return the tokens of an answer; None if nothing was counted, which litellm reports as zeros.

    litellm gives every provider's usage OpenAI's meaning: input includes the cache, output includes reasoning.
    """
    read, written = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if not (read or written):
        return None
    cached, produced = (
        getattr(usage, name, None) for name in ("prompt_tokens_details", "completion_tokens_details")
    )
    lifetimes = getattr(cached, "cache_creation_token_details", None)
    created, for_hour = (
        _count(cached, "cache_creation_tokens"),
        _count(lifetimes, "ephemeral_1h_input_tokens"),
    )
    return Usage(
        read,
        written,
        cache_read=_count(cached, "cached_tokens"),
        cache_write=created - min(created, for_hour),
        cache_write_1h=min(created, for_hour),
        reasoning=_count(produced, "reasoning_tokens"),
    )


def _count(usage: Any, name: str) -> int:
    return getattr(usage, name, 0) or 0


def price_of_answer(
    access: ModelAccess, usage: Usage | None, *, response: Any = None, batch: bool = False
) -> tuple[float | None, Price | None]:
    """Return the cost of an answer and the price's source: the project's, else litellm's, else None."""
    if usage is None:
        return None, None
    custom_price = project_price(access.prices, access.model)
    if custom_price is not None:
        return compute_cost(usage, custom_price), custom_price
    known = litellm_price(access.model, batch=batch)
    if known is None:
        return None, None
    cost = litellm_cost(response, access.model) if response is not None else None
    return (compute_cost(usage, known) if cost is None else cost), known


def calls_of(calls: Sequence[Any], notes: list[str]) -> tuple[ModelCall, ...]:
    """Return the tool calls of an answer; arguments that aren't a JSON object are kept as text and noted."""
    return tuple(_call(each, notes) for each in calls)


def _call(call: Any, notes: list[str]) -> ModelCall:
    name, written = call.function.name or "", call.function.arguments or "{}"
    try:
        arguments = json.loads(written)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        notes.append(f"The arguments of the call of {name} aren't a JSON object.")
        arguments = {"arguments": written}
    return ModelCall(name, arguments, call.id)
