"""Rates of a settings file that look like prices per million tokens get a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.bundles import read_path
from scenarios.formats import parse_files
from tests.commands.calling import call

CASE = Path(__file__).parents[1] / "files/cases/14/llm-tool-test-config.toml"
SCENARIO = """
name: one
target: {binary: mytool}
task: {prompt: do it}
evaluation:
  gates: [{type: command_succeeds, command: "true"}]
"""


def folder(tmp_path: Path, settings: str) -> Path:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    (tmp_path / "llm-tool-test-config.toml").write_text(settings)
    return tmp_path


def rates(model: str, read: float, written: float) -> str:
    return f"[models.{model}]\ninput_cost_per_1k_tokens = {read}\noutput_cost_per_1k_tokens = {written}\n"


@pytest.mark.django_db
def test_the_check_compares_with_litellms_prices(tmp_path: Path) -> None:
    out = call("check_scenarios", str(folder(tmp_path, CASE.read_text()))).out
    assert (
        "llm-tool-test-config.toml:3: models.gpt-4o.input_cost_per_1k_tokens: 2.5 USD per 1,000 tokens is 1,000 times "
        "litellm's price. If it is a price per million tokens, write 0.0025. [format/rate-per-million]"
    ) in out
    assert "0 problems, 2 hints." in out


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "read", "written", "hints"),
    [
        pytest.param("gpt-4o-mini", 0.15, 0.6, 2, id="a cheap model's prices per million"),
        pytest.param("gpt-4o-mini", 0.00015, 0.0006, 0, id="per thousand"),
        pytest.param("gpt-4o-mini", 0.0002, 0.5, 1, id="one of them"),
        pytest.param("our-own", 0.15, 0.4, 0, id="an unknown model"),
        pytest.param("our-own", 3, 15, 2, id="an unknown model's impossible prices"),
        pytest.param("gpt-4o-mini", 0.0, 0.0, 0, id="for nothing"),
    ],
)
def test_prices_per_thousand_tokens_get_no_hint(
    tmp_path: Path, model: str, read: float, written: float, hints: int
) -> None:
    out = call("check_scenarios", str(folder(tmp_path, rates(model, read, written)))).out
    assert out.count("[format/rate-per-million]") == hints


def test_an_upload_gets_the_hint_at_impossible_rates_without_litellm(tmp_path: Path) -> None:
    bundle = read_path(folder(tmp_path, CASE.read_text()))
    [suite] = parse_files(bundle.files, name=bundle.name)
    [first, second] = suite.lints
    assert (first.line, second.line, first.lint) == (3, 4, True)
    assert "2.5 USD per 1,000 tokens is more than any model's list price." in first.what
