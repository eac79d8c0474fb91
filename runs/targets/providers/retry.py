"""When and after how long to retry a request to a model (AgentV evaluation, Provider Retry Configuration)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import uniform
from typing import TypeVar

from evaluators.model import Json
from runs.targets.providers.options import Retry

T = TypeVar("T")

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
