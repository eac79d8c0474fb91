"""Classify litellm's exceptions: an HTTP status, a broken connection, or a request that was never sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.redaction import mask_values, redact_patterns
from runs.sandbox.outbound import AddressRefused
from runs.targets.providers.retry import RequestFailure, retry_after_seconds

_ADVICE = {
    400: "Look at what it says of the request, and correct the target's options.",
    401: "Check the target's key.",
    402: "Check the credit and the billing of the target's account.",
    403: "Check what the target's key may do.",
    404: "Check the target's model and address.",
    408: "Look at the state of the service, and run the trials again.",
    429: "Lower the target's `workers`, or wait until its quota allows more.",
}


def failure_of(error: BaseException, secrets: tuple[str, ...]) -> RequestFailure:
    """Return a failed request's status, error code and text, without secrets."""
    # Imported with litellm and not earlier, because pages import this module too.
    import httpx

    chain = list(_chain(error))
    text = " ".join(str(error).split()) or type(error).__name__
    message = redact_patterns(mask_values(text, secrets))[:LONGEST_ERROR].strip()
    if any(isinstance(each, (httpx.TransportError, ConnectionError, TimeoutError)) for each in chain):
        late = any(isinstance(each, (httpx.ReadTimeout, TimeoutError)) for each in chain)
        name = type(error).__name__
        return RequestFailure(f"the connection broke: {message}", name=name, network=True, unanswered=late)
    if any(isinstance(each, json.JSONDecodeError) for each in chain):
        # A truncated answer is a broken transfer, regardless of its status.
        return RequestFailure(f"the answer isn't JSON: {message}", name=type(error).__name__, network=True)
    headers = _headers(chain)
    if headers is None:
        return RequestFailure(message, name=type(error).__name__)
    waits = retry_after_seconds(headers.get("retry-after"), now=datetime.now(UTC))
    return RequestFailure(message, _status(chain), name=type(error).__name__, retry_after_seconds=waits)


def refusal_in(error: BaseException) -> AddressRefused | None:
    """Return the refused address behind an exception, however many libraries wrapped it; None if there is none."""
    return next((each for each in _chain(error) if isinstance(each, AddressRefused)), None)


def advise_on_failure(failure: RequestFailure) -> str:
    """Return what to do about a failure, as a sentence."""
    if failure.status is None:
        return "Check the target's address and that it can be reached from the worker."
    if failure.status >= 500:
        return "Look at the state of the service, and run the trials again."
    return _ADVICE.get(failure.status, _ADVICE[400])


def describe_failure(failure: RequestFailure) -> str:
    """Return a failure as part of a sentence."""
    status = f"HTTP {failure.status}: " if failure.status is not None else ""
    return f"{status}{failure.message}".rstrip(".")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _headers(chain: list[BaseException]) -> Mapping[str, str] | None:
    """Return the headers of an error's response; None without a response."""
    for error in chain:
        headers: Any = getattr(error, "litellm_response_headers", None)
        if headers is None:
            headers = getattr(getattr(error, "response", None), "headers", None)
        if headers is not None:
            return {str(name).lower(): str(value) for name, value in dict(headers).items()}
    return None


def _status(chain: list[BaseException]) -> int | None:
    for error in chain:
        for holder in (error, getattr(error, "response", None)):
            status = getattr(holder, "status_code", None)
            if isinstance(status, int):
                return status
    return None
