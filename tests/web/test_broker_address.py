"""The settings of the broker: what Celery gets, and what is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalhub import environment
from evalhub.broker_address import BrokerAddress

SENTINELS = "sentinel://:pass%40word@one:26379/2;sentinel://two"


def test_every_sentinel_gets_the_firsts_credentials_and_database():
    assert BrokerAddress(SENTINELS, "main").celery_url() == (
        "sentinel://:pass%40word@one:26379/2;sentinel://:pass%40word@two/2"
    )


def test_sentinels_without_a_port_are_at_the_usual_one():
    assert BrokerAddress(SENTINELS, "main").sentinels == [("one", 26379), ("two", 26379)]


def test_celery_is_given_the_master_and_the_sentinels_password():
    options = BrokerAddress(SENTINELS, "main", "theirs").transport_options()
    assert options["master_name"] == "main"
    assert options["sentinel_kwargs"]["password"] == "theirs"
    assert "ssl" not in options["sentinel_kwargs"]


def test_sentinels_with_tls_verify_certificates_and_names():
    options = BrokerAddress(SENTINELS, "main", encrypted=True, ca="/ca").transport_options()
    given = options["sentinel_kwargs"]
    assert given["ssl"] is True
    assert given["ssl_cert_reqs"] == "required"
    assert given["ssl_check_hostname"] is True
    assert given["ssl_ca_certs"] == "/ca"


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
        ({"url": "redis://host", "encrypted": True}, "Write EVALHUB_BROKER_URL=rediss://"),
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
