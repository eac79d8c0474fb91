import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.grading.template_tokens import (
    Resolved,
    TokenSources,
    other_tokens_in,
    resolve_items,
    resolve_tokens,
    tokens_in,
)
from evaluators.patterns import string_of

SEED = {
    "holdings": {"equities": [{"symbol": "AAPL", "shares": 150, "name": "Apple Inc."}]},
    "totals": {"portfolioValue": 125000},
    "zero": 0,
    "no": False,
    "empty": "",
    "nothing": None,
    "grid": [[1, 2], [3]],
    "with-hyphen": ["x"],
}
SNAPSHOT = {"prices": {"AAPL": {"current": 178.50}}}
SOURCES = TokenSources(SEED, SNAPSHOT)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("{{seed:holdings.equities[0].symbol}}", "AAPL", id="the contract's symbol"),
        pytest.param("{{seed:holdings.equities[0].shares}}", "150", id="the contract's shares"),
        pytest.param("{{seed:totals.portfolioValue}}", "125000", id="the contract's total"),
        pytest.param("{{snapshot:prices.AAPL.current}}", "178.5", id="the contract's price"),
        pytest.param("{{seed:zero}}", "0", id="zero resolves"),
        pytest.param("{{seed:no}}", "false", id="false resolves"),
        pytest.param("{{seed:empty}}", "", id="an empty text resolves"),
        pytest.param("{{seed:grid}}", "[[1,2],[3]]", id="a list is compact JSON"),
        pytest.param("{{seed:grid[0][1]}}", "2", id="indexes repeat"),
        pytest.param("{{seed:with-hyphen[0]}}", "x", id="keys may have hyphens"),
        pytest.param("a {{seed:zero}} b {{seed:no}}", "a 0 b false", id="several in one value"),
        pytest.param("{{env:HOME}}", "{{env:HOME}}", id="other sources stay literal"),
        pytest.param("{{ seed:zero }}", "{{ seed:zero }}", id="blanks make it no token"),
        pytest.param("plain", "plain", id="no token"),
    ],
)
@pytest.mark.spec("tool-forge", "Paths with dots and indexes")
def test_it_replaces_tokens(value, text):
    assert resolve_tokens(value, SOURCES) == Resolved(text)


@pytest.mark.parametrize(
    "token",
    [
        "{{seed:nope.x}}",
        "{{seed:nothing}}",
        "{{seed:holdings.equities[1].symbol}}",
        "{{seed:totals[0]}}",
        "{{seed:grid.0}}",
        "{{seed:zero.deeper}}",
        "{{seed:}}",
        "{{seed:grid[99999999999999999999]}}",
        "{{snapshot:prices.TSLA.current}}",
    ],
)
@pytest.mark.spec("tool-forge", "Missing and null are unresolved")
def test_a_token_without_a_value_is_unresolved(token):
    assert resolve_tokens(token, SOURCES) == Resolved(None, (token,))


def test_one_unresolved_token_makes_the_value_unresolved():
    found = resolve_tokens("{{seed:zero}} {{seed:x}} {{snapshot:y}}", SOURCES)
    assert found == Resolved(None, ("{{seed:x}}", "{{snapshot:y}}"))


@pytest.mark.spec("tool-forge", "Without a snapshot its tokens are unresolved")
def test_without_a_source_its_tokens_are_unresolved():
    assert resolve_tokens("{{snapshot:prices}}", TokenSources(SEED)).text is None


def test_a_list_may_be_the_root():
    assert resolve_tokens("{{seed:[1]}}", TokenSources(["a", "b"])).text == "b"


def test_inserted_values_are_not_searched_for_tokens():
    sources = TokenSources({"a": "{{seed:b}}", "b": "deep"})
    assert resolve_tokens("{{seed:a}}", sources).text == "{{seed:b}}"


def test_a_single_token_resolves_to_a_list():
    assert resolve_items("{{seed:grid[0]}}", SOURCES) == [1, 2]
    assert resolve_items("x {{seed:grid[0]}}", SOURCES) is None
    assert resolve_items("{{seed:zero}}", SOURCES) is None


def test_it_distinguishes_tokens_from_similar_texts():
    text = "{{seed:a}} {{env:B}} {{ seed:c }} {{d}}"
    assert tokens_in(text) == ("{{seed:a}}",)
    assert other_tokens_in(text) == ("{{env:B}}", "{{ seed:c }}")


KEYS = st.text(string.ascii_letters + string.digits + "_-", min_size=1)
LEAVES = st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(KEYS | st.integers(0, 5), min_size=1, max_size=6), LEAVES)
@pytest.mark.spec("tool-forge", "Paths with dots and indexes")
def test_every_leaf_can_be_reached_by_its_path(steps, leaf):
    value, path = leaf, ""
    for step in reversed(steps):
        if isinstance(step, int):
            value, path = [None] * step + [value], f"[{step}]{path}"
        else:
            value, path = {step: value}, f".{step}{path}"
    assert resolve_tokens(f"{{{{seed:{path.removeprefix('.')}}}}}", TokenSources(value)).text == string_of(
        leaf
    )


@given(st.text(), st.text())
def test_it_takes_any_text(value, path):
    resolve_tokens(value, SOURCES)
    resolve_tokens(f"{{{{seed:{path}}}}}", SOURCES)


@given(st.text(st.characters(exclude_characters="{}")))
def test_a_text_without_braces_stays_as_it_is(value):
    assert resolve_tokens(value, SOURCES) == Resolved(value)
