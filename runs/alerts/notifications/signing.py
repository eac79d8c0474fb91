"""Sign webhook messages so that a receiver knows who sent them and when.

Source: Standard Webhooks, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
"""Bytes of a key."""


def new_secret() -> str:
    """Return a random secret of 32 bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def decode_key(secret: str) -> bytes:
    """Return the key of `whsec_` and base64. Raises `ValueError` if it is none, or not of 24 to 64 bytes."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if not secret.startswith(PREFIX) or not SHORTEST <= len(key) <= LONGEST:
        raise ValueError("not a key")
    return key


def signature_headers(secret: str, message_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message; `seconds` since 1970 is the time of the attempt.

    The signature is the base64 of HMAC-SHA256 over `id.seconds.body`.
    """
    signed = b".".join((message_id.encode(), str(seconds).encode(), body))
    digest = hmac.new(decode_key(secret), signed, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
