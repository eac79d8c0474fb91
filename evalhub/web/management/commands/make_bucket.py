"""For a new installation: make the bucket that `EVALHUB_STORE` names."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.storage import storages

from evalhub.web.commands import PlainCommand, Refused, Result


class Command(PlainCommand):
    help = "Make the bucket of EVALHUB_STORE where there is none."
    examples = ("",)

    def arguments(self, parser: ArgumentParser) -> None:
        pass

    def work(self, options: dict[str, Any]) -> Result:
        store: Any = storages["artifacts"]
        name = getattr(store, "bucket_name", "")
        if not name:
            raise Refused("EVALHUB_STORE names no bucket. Set it to s3://bucket.", id="store/no-bucket")
        try:
            is_new = _make(store.connection.meta.client, name, getattr(store, "region_name", "") or "")
        except ClientError as error:
            raise Refused(f"The store refused bucket {name}: {error}.", id="store/refused") from error
        except BotoCoreError as error:
            raise Refused(f"The file store does not answer: {error}.", id="store/unavailable") from error
        text = f"Made bucket {name}." if is_new else f"Bucket {name} exists."
        return Result(text, {"bucket": name, "made": is_new})


def _make(client: Any, name: str, region: str) -> bool:
    """Make the bucket unless it is there; return whether it was made. Raises `ClientError`, `BotoCoreError`."""
    try:
        client.head_bucket(Bucket=name)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
            raise
    else:
        return False
    # S3 takes every region as a constraint but its first.
    place = {} if region in ("", "us-east-1") else {"LocationConstraint": region}
    client.create_bucket(Bucket=name, **({"CreateBucketConfiguration": place} if place else {}))
    return True
