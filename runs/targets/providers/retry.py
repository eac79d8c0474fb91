"""When and after how long to retry a request to a model (AgentV evaluation, Provider Retry Configuration).

litellm's exceptions are classified as an HTTP status, a broken connection, or a request that was never sent. Calls
that can't be interrupted are abandoned on timeout or cancellation.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import uniform
from typing import Any, Generic, TypeVar

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.model import Json
from evaluators.redaction import mask_values, redact_patterns
from runs.sandbox.outbound import AddressRefused
from runs.targets.providers.options import Retry

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


T = TypeVar("T")

LOOK_SECONDS = 0.2


class Cancelled(Exception):
    """The call was cancelled."""


class TimeLimitExceeded(Exception):
    """The time limit was exceeded."""


@dataclass
class TimeLimit:
    """A time limit from now on, and a check for cancellation."""

    seconds: float
    cancelled: Callable[[], bool] = lambda: False
    began: float = field(default_factory=time.monotonic)

    @property
    def passed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Return the seconds until the limit, at least 0.0."""
        return max(0.0, self.seconds - self.passed)

    def begin(self) -> None:
        """Restart the time limit."""
        self.began = time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises `Cancelled`; raises `TimeLimitExceeded` at once if the wait exceeds the limit."""
        if seconds >= self.left:
            raise TimeLimitExceeded
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.cancelled():
                raise Cancelled
            time.sleep(min(left, LOOK_SECONDS))


@dataclass
class _Call(Generic[T]):
    """One call in its own thread, with its result or error."""

    call: Callable[[], T]
    result: list[T] = field(default_factory=list)
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result.append(self.call())
        # Any exception is raised again in the waiting thread; here it would be lost.
        except BaseException as error:
            self.error = error


def wait_within(call: Callable[[], T], patience: TimeLimit) -> T:
    """Return the call's result or raise its exception, within the time limit.

    Raises `Cancelled` or `TimeLimitExceeded`; the call then continues in its thread, and nobody reads its result. It should have
    the time that is left as its own limit, so that it ends soon after: a call of litellm has it for each wait on its
    connection, which a server that sends a byte now and then can draw out.
    """
    running = _Call(call)
    # A daemon thread, because a hanging call must not keep the process alive.
    thread = threading.Thread(target=running.run, name="model-call", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(min(LOOK_SECONDS, patience.left))
        if not thread.is_alive():
            break
        if patience.cancelled():
            raise Cancelled
        if patience.left <= 0:
            raise TimeLimitExceeded
    if running.error is not None:
        raise running.error
    return running.result[0]


MAX_RETRIES = 3
INITIAL_DELAY_MS = 1_000.0
MAX_DELAY_MS = 60_000.0
BACKOFF_FACTOR = 2.0
RETRYABLE_STATUS_CODES = (500, 408, 429, 502, 503, 504)
JITTER = (0.75, 1.25)

_NETWORK_CODE = re.compile(r"E(?:AI|CONN|HOST|NET|PIPE|TIME|REFUSED|RESET)", re.IGNORECASE)
_NETWORK_MESSAGE = re.compile(
    r"network|fetch failed|connection (?:error|reset|refused|aborted)|timed? ?out"
    r"|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED",
    re.IGNORECASE,
)
_HTTP_STATUS = re.compile(r"\bHTTP[ /:]*(?:\d\.\d )?(\d{3})\b", re.IGNORECASE)
_CANCELLATION = re.compile(r"Abort|Cancel", re.IGNORECASE)


@dataclass(frozen=True)
class RequestFailure:
    """A failed request."""

    message: str = ""
    status: int | None = None
    code: str = ""
    """Error code of the operating system, such as ECONNRESET."""
    name: str = ""
    """Name of the error's class."""
    retry_after_seconds: float | None = None
    """Wait that the server requests."""
    network: bool = False
    """Whether the class is a connection error."""
    unanswered: bool = False
    """Whether nothing came within the time limit."""

    @property
    def known_status(self) -> int | None:
        """The HTTP status, from the message if it is nowhere else."""
        if self.status is not None:
            return self.status
        match = _HTTP_STATUS.search(self.message)
        return int(match[1]) if match else None


class RequestFailed(Exception):
    """A request to a model failed; the message is the failure's."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class Backoff:
    """Complete retry settings; times in milliseconds."""

    max_retries: int = MAX_RETRIES
    initial_delay_ms: float = INITIAL_DELAY_MS
    max_delay_ms: float = MAX_DELAY_MS
    backoff_factor: float = BACKOFF_FACTOR
    retryable_status_codes: Collection[int] = field(default=RETRYABLE_STATUS_CODES)

    @classmethod
    def of(cls, retry: Retry | None) -> Backoff:
        """Return a target's settings, completed with the defaults."""
        settings = {name: value for name, value in retry or () if value is not None}
        return cls(**settings)


def is_retryable(failure: RequestFailure, codes: Collection[int] = RETRYABLE_STATUS_CODES) -> bool:
    """Return whether a request may be retried: by its status, else if the network failed.

    401 and 403 never are, nor is what was cancelled.
    """
    if _CANCELLATION.search(failure.name):
        return False
    status = failure.known_status
    if status is not None:
        # Statuses that are never retried, regardless of the settings.
        return status not in (401, 403) and status in codes
    return (
        failure.network
        or _NETWORK_CODE.match(failure.code) is not None
        or _NETWORK_MESSAGE.search(failure.message) is not None
    )


def delay_ms(
    attempt: int, backoff: Backoff, *, jitter: float, retry_after_seconds: float | None = None
) -> float:
    """Return the wait before the retry after `attempt` (0 is the first), in milliseconds.

    `jitter` is a factor near 1, applied to the capped wait, so that waits at the cap differ too. What the other side
    asks for is waited at least. The cap holds after both.
    """
    grows_beyond_floats = attempt * math.log(max(backoff.backoff_factor, 1.0)) > 600
    growth = math.inf if grows_beyond_floats else backoff.backoff_factor**attempt
    delay = min(backoff.initial_delay_ms * growth, backoff.max_delay_ms) * jitter
    asked = 1000 * (retry_after_seconds or 0.0)
    return min(max(delay, asked), backoff.max_delay_ms)


def with_retry(
    call: Callable[[], T],
    backoff: Backoff,
    sleep: Callable[[float], object],
    *,
    jitter: Callable[[], float] = lambda: uniform(*JITTER),  # noqa: S311  # no secret depends on it
) -> T:
    """Return the call's result, retrying while it raises a retryable `RequestFailed`.

    `sleep` gets seconds. The last error is raised as it came, at once where no retry would help.
    """
    for attempt in range(backoff.max_retries):
        try:
            return call()
        except RequestFailed as error:
            if not is_retryable(error.failure, backoff.retryable_status_codes):
                raise
            asked = error.failure.retry_after_seconds
            sleep(delay_ms(attempt, backoff, jitter=jitter(), retry_after_seconds=asked) / 1000)
    return call()


def retry_after_seconds(value: Json, *, now: datetime) -> float | None:
    """Return the wait that a Retry-After header requests, as seconds or a date; None for anything else."""
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if re.fullmatch(r"\d{1,9}(?:\.\d+)?", text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
