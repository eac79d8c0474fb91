import pytest

from evaluators.statistics.staleness import (
    RegisteredTool,
    Registry,
    Staleness,
    check_staleness,
    description_hash,
)

DESCRIPTION = "Tells the weather."
HASH = description_hash(DESCRIPTION)


def registry(size=10, description=DESCRIPTION, version="1.0.0"):
    return Registry(size, {"get_weather": RegisteredTool(description, version)})


def metadata(**changes):
    known = {"toolName": "get_weather", "toolVersion": "1.0.0", "descriptionHash": HASH, "registrySize": 10}
    return {**known, **changes}


def test_the_hash_is_the_beginning_of_the_sha256():
    assert description_hash("") == "e3b0c44298fc"


def test_a_file_that_fits_its_tool_is_not_stale():
    assert check_staleness(metadata(), registry()) == Staleness((), False, HASH, HASH)


@pytest.mark.spec("tool-forge", "Another description warns and marks as stale")
def test_another_description_makes_the_result_stale():
    found = check_staleness(metadata(descriptionHash="abc123"), registry())
    assert found.stale
    assert found.warnings == (
        f"Evals for get_weather generated against description hash abc123, current is {HASH}. "
        "Results may not reflect current routing contract.",
    )


@pytest.mark.spec("tool-forge", "A registry grown by more than half warns")
def test_a_registry_that_has_grown_by_more_than_half_warns():
    found = check_staleness(metadata(), registry(size=16))
    assert not found.stale
    assert found.warnings == (
        "Registry has grown from 10 to 16 tools. Labeled evals may have under-specified toolsAcceptable sets.",
    )


@pytest.mark.parametrize("size", [15, 10, 2], ids=["by half", "same", "shrunk"])
def test_a_registry_that_has_grown_by_half_or_less_does_not_warn(size):
    assert check_staleness(metadata(), registry(size=size)).warnings == ()


@pytest.mark.spec("tool-forge", "Another major version warns")
def test_another_major_version_warns():
    found = check_staleness(metadata(), registry(version="2.0.0"))
    assert not found.stale
    assert found.warnings == (
        "Tool get_weather is version 2.0.0, evals were generated for 1.0.0. Schema may have changed.",
    )


def test_another_minor_version_does_not_warn():
    assert check_staleness(metadata(), registry(version="v1.9.3")).warnings == ()


def test_a_tool_that_is_not_in_the_registry_warns_once():
    found = check_staleness(metadata(toolName="gone"), registry())
    assert found.warnings == (
        "Tool gone is not in the registry, so its description and version were not checked.",
    )


def test_no_registry_warns_once():
    found = check_staleness(metadata(), None)
    assert not found.stale
    assert len(found.warnings) == 1
    assert "no tool registry" in found.warnings[0]


@pytest.mark.parametrize("missing", [None, {}], ids=["none", "empty"])
@pytest.mark.spec("tool-forge", "Bare list without metadata")
def test_without_metadata_nothing_is_checked(missing):
    assert check_staleness(missing, registry(size=100)) == Staleness()


def test_a_key_that_a_template_left_open_is_not_compared():
    found = check_staleness(metadata(descriptionHash="{{hash}}", toolVersion="{{v}}"), registry(version="9"))
    assert found.warnings == ()


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_key_is_not_compared(blank):
    found = check_staleness(metadata(descriptionHash=blank, toolVersion=blank), registry(version="9"))
    assert (found.warnings, found.stale) == ((), False)


def test_an_unreadable_description_is_reported_as_unchecked():
    found = check_staleness(metadata(), registry(description=None))
    assert not found.stale
    assert found.warnings == (
        "The description of get_weather is not statically readable, so its hash was not checked.",
    )


def test_warnings_are_in_the_contracts_order():
    found = check_staleness(
        metadata(descriptionHash="abc123", registrySize=2, toolVersion="2.0.0"), registry()
    )
    assert [warning.split()[0] for warning in found.warnings] == ["Evals", "Registry", "Tool"]
