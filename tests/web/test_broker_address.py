"""The settings of the broker: what Celery gets, and what is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalhub import environment
from evalhub.broker_address import BrokerAddress

SENTINELS = "sentinel://:word@one:26379/2;sentinel://:word@two:26379/2"


def test_celery_is_given_the_sentinels_as_written_and_the_master():
    address = BrokerAddress(SENTINELS, "main")
    address.check()
    assert (address.url, address.transport_options()["master_name"]) == (SENTINELS, "main")


def test_a_socket_of_this_machine_needs_no_options():
    address = BrokerAddress("redis+socket://:word@/run/valkey.sock?virtual_host=1")
    assert (address.tls, address.transport_options()) == ({}, {})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"url": "amqp://host"}, "isn't a valid broker URL"),
        ({"url": "redis://one;redis://two"}, "isn't a valid broker URL"),
        ({"url": "redis://host:none/0"}, "has a port that isn't a number"),
        ({"url": SENTINELS}, "EVALHUB_BROKER_MASTER is not set"),
        ({"url": "redis://host", "ca": "/ca"}, "need TLS"),
        ({"url": SENTINELS, "master": "main", "ca": "/ca"}, "need TLS"),
        ({"url": "rediss://host", "key": "/key"}, "Set both or neither"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_a_sentence(options, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence):
        BrokerAddress(**options).check()


def test_a_refusal_never_quotes_the_password():
    with pytest.raises(ImproperlyConfigured) as refused:
        BrokerAddress("http://:hunter2@host").check()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["redis://host", "rediss://:word@host:6380/1", "redis+socket:///run/x"])
def test_addresses_of_one_broker_are_accepted(url):
    BrokerAddress(url).check()


def test_a_certificate_that_cannot_be_read_is_named(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("EVALHUB_BROKER_CA", str(tmp_path / "gone.pem"))
    with pytest.raises(ImproperlyConfigured, match=r"EVALHUB_BROKER_CA names .*gone\.pem, which cannot be"):
        environment.readable_file("EVALHUB_BROKER_CA")
