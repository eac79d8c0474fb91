"""What can be wrong with a request, as one tree.

RequestError             the request cannot be carried out as it stands; the message says what to do
├── NothingToRun         no scenario is left after choosing
├── UnknownTarget        a name that is no target of the project
├── NoWorker             nobody is there to carry it
└── NotWritable          a file for what comes of it cannot be written
"""


class RequestError(Exception):
    """A request that cannot be carried out; the message is a sentence for people."""

    id = "request/invalid"


class NothingToRun(RequestError):
    """No scenario is left after choosing by tags, tier and keys."""

    id = "request/nothing-to-run"


class UnknownTarget(RequestError):
    """The named target does not exist or is not accepted yet."""

    id = "request/unknown-target"


class NoWorker(RequestError):
    """No worker has been running for longer than was to be waited; what was requested stays."""

    id = "request/no-worker"


class NotWritable(RequestError):
    """A file that results were to be written to cannot be."""

    id = "request/not-writable"
