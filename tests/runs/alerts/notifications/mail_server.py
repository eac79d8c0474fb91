"""A mail server on loopback: enough of SMTP (RFC 5321) for one mail at a time, and it fails on request."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage


@dataclass
class MailServer:
    """A server and the mails that it accepted."""

    port: int = 0
    refusal: str = ""
    """What it answers to a recipient, such as `451 Try again later.`; empty accepts."""
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Serve in a thread until the block is left."""
    server = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            recipients: list[str] = []
            self._say("220 loopback")
            for raw in self.rfile:
                line = raw.decode().strip()
                verb = line.split(" ")[0].split(":")[0].upper()
                if verb == "RCPT" and server.refusal:
                    self._say(server.refusal)
                elif verb == "RCPT":
                    recipients.append(line.partition("<")[2].partition(">")[0])
                    self._say("250 OK")
                elif verb == "DATA":
                    self._say("354 Go on.")
                    server.mails.append((recipients, self._mail()))
                    self._say("250 OK")
                elif verb == "QUIT":
                    self._say("221 Bye.")
                    return
                else:
                    self._say("250 OK")

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def _mail(self) -> EmailMessage:
            lines = iter(self.rfile.readline, b".\r\n")
            content = b"".join(line.removeprefix(b".") if line.startswith(b"..") else line for line in lines)
            message = email.message_from_bytes(content, policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            return message

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        server.port = listener.server_address[1]
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
