"""Errors of requests and targets.

RequestError             the request can't be executed; the message says what to do
├── NothingToRun         no scenario matches the selection
├── UnknownTarget        the project has no target of this name
├── MissingLabels        this process does not have a target's labels
├── Unconfirmable        an alert can't be confirmed by fresh trials
├── Unrevertable         an alert's guidance can't be reverted
├── NotRetryable         the run has nothing to run again, or must stay as it is
├── NoWorker             no worker is online to run it
└── NotWritable          an output file can't be written

ProviderError            a target could not do its task; the trial is an error, not a failure
"""


class RequestError(Exception):
    """A request that cannot be carried out; the message is a sentence for people."""

    id = "request/invalid"


class NotRetryable(RequestError):
    """The run has nothing to retry or resume, or it must stay as it is."""

    id = "run/not-retryable"


class NothingToRun(RequestError):
    """No scenario is left after choosing by tags, tier and keys."""

    id = "request/nothing-to-run"


class UnknownTarget(RequestError):
    """The named target does not exist or is not accepted yet."""

    id = "request/unknown-target"


class NoJudge(RequestError):
    """Nothing could judge the trials of a launch, and nothing else decides them."""

    id = "run/no-judge"


class MissingLabels(RequestError):
    """This process is to carry out a run, and lacks labels of its target."""

    id = "request/missing-labels"


class Unconfirmable(RequestError):
    """An alert can't be confirmed by fresh trials, or not now."""

    id = "alert/unconfirmable"


class Unrevertable(RequestError):
    """The guidance that an alert is about isn't the suite's any more, or never was."""

    id = "alert/unrevertable"


class NoWorker(RequestError):
    """No worker has been running for longer than was to be waited; what was requested stays."""

    id = "request/no-worker"


class NotWritable(RequestError):
    """A file that results were to be written to cannot be."""

    id = "request/not-writable"


class ProviderError(Exception):
    """The target could not do the task for a reason that is not the agent's: the trial is an error, not a fail.

    `kind` is a stable word for machines: start, command, setup, configuration, endpoint,
    attachment, timeout, cancelled, memory. `seconds` is the time that the target took until then, if it was measured.
    """

    def __init__(self, message: str, *, kind: str = "start", seconds: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.seconds = seconds


class StaleReview(RequestError):
    """Somebody else decided first; nothing was changed."""

    id = "review/taken"
