from __future__ import annotations

import pytest

from evaluators.model import same_model

pytestmark = pytest.mark.spec("llm-tool-test", "Not the model under test")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("gpt-4o", "gpt-4o", True, id="the same name"),
        pytest.param("openai/gpt-4o", "gpt-4o", True, id="one with its provider"),
        pytest.param("openai/gpt-4o", "azure/gpt-4o", True, id="two providers of one model"),
        pytest.param("gpt-4o", "gpt-4o-mini", False, id="a longer name"),
        pytest.param("", "", False, id="no names"),
    ],
)
def test_it_recognises_the_model_under_test(one, other, same):
    assert same_model(one, other) is same
