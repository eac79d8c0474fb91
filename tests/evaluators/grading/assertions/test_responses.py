import pytest

from tests.evaluators.grading.assertions.expecting import failures, judged, seen

SEED = {"total": 125000, "empty": "", "city": "Paris"}


def facts_of(answer):
    return seen(answer, seed=SEED)


@pytest.mark.parametrize(
    "answer", ["", "  \n\t ", "\u00a0\ufeff"], ids=["nothing", "white space", "white space of JavaScript"]
)
@pytest.mark.spec("tool-forge", "responseNonEmpty")
def test_an_empty_response_is_empty(answer):
    assert failures(facts_of(answer), response_non_empty=True) == ("responseNonEmpty: the response is empty",)


def test_a_refusal_is_not_empty():
    assert judged(facts_of("I cannot help"), response_non_empty=True).passed


@pytest.mark.parametrize("answer", ["\x1c", "\x85", "\u200b"])
def test_other_white_space_is_not_empty(answer):
    assert judged(facts_of(answer), response_non_empty=True).passed


@pytest.mark.spec("tool-forge", "responseContains, case-sensitive")
def test_contains_needs_every_value():
    assert judged(facts_of("Paris 18"), response_contains=("Paris", "18")).passed
    assert failures(facts_of("x"), response_contains=("Tokyo", "Rome")) == (
        "responseContains: expected 'Tokyo' in response but not found",
        "responseContains: expected 'Rome' in response but not found",
    )


@pytest.mark.spec("tool-forge", "responseContains, case-sensitive")
def test_contains_minds_case():
    assert not judged(facts_of("in paris"), response_contains=("Paris",)).passed


def test_numbers_are_compared_without_formatting():
    assert not judged(facts_of("worth 125,000"), response_contains=("{{seed:total}}",)).passed
    assert judged(facts_of("worth 125000"), response_contains=("{{seed:total}}",)).passed


@pytest.mark.spec("tool-forge", "responseContainsAny")
def test_contains_any_needs_one_of_each_group():
    groups = (("a", "b"), ("c", "d"))
    assert judged(facts_of("b c"), response_contains_any=groups).passed
    assert failures(facts_of("a b"), response_contains_any=groups) == (
        "responseContainsAny: expected one of 'c', 'd' in response but none found",
    )


@pytest.mark.spec("tool-forge", "Unresolved: in a group, the value is removed")
def test_an_unresolved_value_is_removed_from_its_group():
    group = (("{{seed:nope}}", "b"),)
    assert judged(facts_of("b"), response_contains_any=group).passed
    assert not judged(facts_of("zzz"), response_contains_any=group).passed


@pytest.mark.spec("tool-forge", "Unresolved: in a group, the value is removed")
def test_a_group_without_resolved_values_is_skipped():
    found = judged(facts_of("zzz"), response_contains_any=(("{{seed:nope}}",),))
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 0, 1)
    assert found.skipped_tokens == ("{{seed:nope}}",)


@pytest.mark.parametrize("groups", [(), ((),)], ids=["no group", "an empty group"])
def test_contains_any_of_nothing_is_skipped(groups):
    found = judged(facts_of("zzz"), response_contains_any=groups)
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 0, 1)


@pytest.mark.spec("tool-forge", "responseNotContains")
def test_not_contains_forbids_each_value():
    assert judged(facts_of("fetchedat"), response_not_contains=("fetchedAt",)).passed
    assert failures(facts_of("has fetchedAt"), response_not_contains=("fetchedAt",)) == (
        'responseNotContains: found "fetchedAt" in response',
    )


@pytest.mark.parametrize("key", ["response_contains", "response_not_contains"])
@pytest.mark.spec("tool-forge", "Unresolved: in responseContains, the value is skipped")
def test_an_unresolved_value_is_skipped_alone(key):
    found = judged(facts_of("b"), **{key: ("{{seed:nope}}", "b" if key == "response_contains" else "x")})
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 1, 1)


@pytest.mark.parametrize("value", ["", "{{seed:empty}}"], ids=["is", "resolves to"])
@pytest.mark.parametrize("key", ["response_contains", "response_not_contains"])
def test_an_empty_value_is_skipped_with_a_warning(key, value):
    found = judged(facts_of("b"), **{key: (value,)})
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 0, 1)
    assert "empty text" in found.warnings[0]


@pytest.mark.spec("tool-forge", "responseMatches")
def test_matches_searches_with_every_pattern():
    assert judged(facts_of("Paris 18"), response_matches=(r"\d+", "^Par")).passed
    assert failures(facts_of("Paris"), response_matches=(r"\d+",)) == (
        r"responseMatches: '\d+' does not match the response",
    )


def test_a_pattern_is_read_as_javascript_reads_it():
    assert judged(facts_of("12\u00a0€"), response_matches=(r"^\d+\s€$",)).passed


@pytest.mark.spec("tool-forge", "Fields with tokens")
def test_tokens_are_not_replaced_in_patterns():
    assert not judged(facts_of("Paris"), response_matches=("{{seed:city}}",)).passed


@pytest.mark.hostile
def test_a_pattern_that_searches_too_long_fails():
    (failure,) = failures(facts_of("a" * 60 + "!"), response_matches=(r"^(?!x)(a|aa)+\1$",))
    assert "was stopped: it took longer than 0.5 s" in failure


def test_an_empty_pattern_is_skipped():
    assert judged(facts_of("x"), response_matches=("",)).assertions_skipped == 1
