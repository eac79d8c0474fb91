import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.patterns import javascript_json, string_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("as is", "as is", id="text"),
        pytest.param(True, "true", id="true"),
        pytest.param(False, "false", id="false"),
        pytest.param(None, "null", id="null"),
        pytest.param(7, "7", id="whole"),
        pytest.param(7.0, "7", id="whole float"),
        pytest.param(178.50, "178.5", id="no trailing zero"),
        pytest.param(-0.0, "0", id="minus zero"),
        pytest.param(-2.5, "-2.5", id="negative"),
        pytest.param(1e20, "100000000000000000000", id="written out below 21 digits"),
        pytest.param(1e21, "1e+21", id="exponent from 21 digits"),
        pytest.param(1.5e300, "1.5e+300", id="large"),
        pytest.param(0.000001, "0.000001", id="six places"),
        pytest.param(1.5e-7, "1.5e-7", id="seven places"),
        pytest.param(2**63, "9223372036854775808", id="whole numbers stay exact"),
        pytest.param(float("nan"), "NaN", id="not a number"),
        pytest.param(float("-inf"), "-Infinity", id="infinite"),
        pytest.param({"b": [1.0, "é"], "a": None}, '{"b":[1,"é"],"a":null}', id="object"),
    ],
)
def test_it_writes_values_as_javascript_does(value, text):
    assert string_of(value) == text


def test_a_text_inside_an_object_is_quoted():
    assert javascript_json(["a"]) == '["a"]'


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_written_values_read_back_equal(value):
    assert json.loads(javascript_json(value), parse_int=float) == value
