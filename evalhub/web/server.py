"""gunicorn's workers, which answer what they cannot read in the shape of the REST interface."""

from __future__ import annotations

import json
from contextlib import suppress
from http import HTTPStatus
from socket import socket
from typing import Any

from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine
from gunicorn.workers.gthread import ThreadWorker as GunicornWorker

_REFUSED: dict[type[Exception], tuple[HTTPStatus, str, str]] = {
    LimitRequestLine: (
        HTTPStatus.REQUEST_URI_TOO_LONG,
        "The address is too long. Send less in its query.",
        "api/address-too-long",
    ),
    LimitRequestHeaders: (
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        "The headers are too large. Send fewer or shorter ones.",
        "api/headers-too-large",
    ),
}


class ThreadWorker(GunicornWorker):  # type: ignore[misc]  # it has no types
    """gunicorn's threads; `--worker-class evalhub.web.server.ThreadWorker`."""

    def handle_error(self, req: Any, client: socket, addr: Any, exc: Exception) -> None:
        """Answer what is too long as JSON; nothing is known yet of where it was sent."""
        refused = _REFUSED.get(type(exc))
        if refused is None:
            super().handle_error(req, client, addr, exc)
            return
        self.log.warning("Refused a request: %s", exc)
        # A client that has gone needs no answer.
        with suppress(OSError):
            client.sendall(_answer(*refused))


def _answer(status: HTTPStatus, sentence: str, id: str) -> bytes:
    body = json.dumps({"detail": sentence, "id": id, "problems": []}).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
