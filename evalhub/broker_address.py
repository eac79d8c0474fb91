"""The broker's address with its TLS settings, in the words of Celery and redis-py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True)
class BrokerAddress:
    """Where the broker is. `url` holds several addresses, separated by `;`, where Sentinels name the master."""

    url: str
    master: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def parts(self) -> list[SplitResult]:
        """Each address of `url`, split."""
        return [urlsplit(each.strip()) for each in self.url.split(";") if each.strip()]

    @property
    def has_sentinels(self) -> bool:
        """Whether Sentinels name the broker."""
        return self.parts[0].scheme == "sentinel"

    @property
    def is_socket(self) -> bool:
        """Whether the broker listens on a Unix socket of this machine."""
        return self.parts[0].scheme == "redis+socket"

    @property
    def tls(self) -> dict[str, Any]:
        """redis-py's options for TLS; empty without it. Certificates and host names are always verified."""
        if self.parts[0].scheme != "rediss":
            return {}
        files = {"ssl_ca_certs": self.ca, "ssl_certfile": self.certificate, "ssl_keyfile": self.key}
        certificates = {name: path for name, path in files.items() if path}
        return {"ssl_cert_reqs": "required", "ssl_check_hostname": True, **certificates}

    def transport_options(self) -> dict[str, Any]:
        """Return the options of Celery's transport that follow from the address."""
        if self.is_socket:
            return {}
        # Timeout of a connection to the broker on another host, so that a dead one delays no page for
        # minutes.
        # Timeout of an answer from the broker; a connection to a host that vanished is dropped after it.
        limits = {"socket_connect_timeout": 2.0, "socket_timeout": 10.0}
        return {**limits, "master_name": self.master} if self.has_sentinels else limits

    def check(self) -> None:
        """Raise ImproperlyConfigured with what is wrong with the settings, and what to write instead."""
        for part in self.parts:
            self._check_part(part)
        if self.has_sentinels and not self.master:
            raise ImproperlyConfigured(
                "EVALHUB_BROKER_URL names Sentinels, and EVALHUB_BROKER_MASTER is not set. "
                "Give it the name under which they watch the broker, such as mymaster."
            )
        if bool(self.certificate) != bool(self.key):
            raise ImproperlyConfigured(
                "EVALHUB_BROKER_CERTIFICATE and EVALHUB_BROKER_KEY belong together. Set both or neither."
            )
        if (self.ca or self.certificate) and not self.tls:
            raise ImproperlyConfigured(
                "EVALHUB_BROKER_CA and EVALHUB_BROKER_CERTIFICATE need TLS. Write rediss:// in EVALHUB_BROKER_URL."
            )

    def _check_part(self, part: SplitResult) -> None:
        one = len(self.parts) == 1
        # No address in the sentence: it may hold a password.
        if part.scheme not in ("redis", "rediss", "redis+socket", "sentinel") or (
            part.scheme != "sentinel" and not one
        ):
            raise ImproperlyConfigured(
                "EVALHUB_BROKER_URL isn't a valid broker URL. Write redis://:password@host:6379/0, rediss://… for TLS, "
                "or sentinel://:password@host1:26379/0;sentinel://:password@host2:26379/0."
            )
        try:
            known = part.port is None or part.port > 0
        except ValueError:
            known = False
        if not known:
            raise ImproperlyConfigured(
                "EVALHUB_BROKER_URL has a port that isn't a number from 1 to 65535. Write redis://host:6379/0."
            )
