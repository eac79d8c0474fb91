"""What the form for new runs offers, and what stays chosen."""

from __future__ import annotations

import re

from django.utils import timezone

from runs.models import TargetCheck
from tests.builders import make_guidance, make_suite, make_target
from tests.runs.past_runs import past_run
from tests.web.new_run.form import ADDRESS, FETCHED, given, plain


def test_what_is_chosen_stays_chosen(signed_in, version, project):
    guidance = make_guidance(version.suite, "AGENTS.md \u202ev1 <b>")
    make_guidance(make_suite(project, name="Second").suite)
    text = signed_in().post(ADDRESS, given(plan="yes", guidance=str(guidance.pk))).content.decode()
    chosen = re.findall(r'<option value="([^"]*)" selected>', text)
    assert chosen == ["basics", str(guidance.pk)]
    assert re.findall(r'<optgroup label="([^"]*)">', text) == ["Basics", "Second"]
    assert "\u202e" not in text
    assert "v1 &lt;b&gt;" in text


def test_the_form_takes_what_the_address_says(signed_in, version):
    text = signed_in().get(f"{ADDRESS}?suite=basics&targets=local&models=gpt-5").content.decode()
    assert 'value="gpt-5"' in text
    assert re.search(r'name="targets" id="target-\d+" value="local" checked', text)


def test_a_target_says_whether_it_can_start_and_what_to_do(signed_in, version, project):
    for name, available, sentence in (
        ("ready", True, ""),
        ("broken", False, "No executable 'codex' on PATH."),
    ):
        TargetCheck.objects.create(
            target=make_target(project, name),
            at=timezone.now(),
            worker="eval-2",
            available=available,
            sentence=sentence,
            version="2.1",
        )
    make_target(project, "proposed", accepted=False)
    text = signed_in().get(ADDRESS).content.decode()
    rows = dict(re.findall(r'name="targets".*?value="(\w+)".*?badge [^>]*>([^<]*)<', text, re.DOTALL))
    assert rows == {"local": "not checked", "ready": "ready", "broken": "cannot start"}
    assert "No executable &#39;codex&#39; on PATH." in text
    assert "Found on eval-2," in text
    assert text.count("Found on") == 1


def test_a_target_says_what_a_trial_costs_there(signed_in, version, project):
    past_run(version, cost_usd=0.107)
    past_run(version, cost_usd=None, target=make_target(project, "silent"))
    make_target(project, "unused")
    text = signed_in().get(ADDRESS).content.decode()
    rows = re.findall(r'name="targets".*?value="(\w+)".*?<td class="num">(.*?)</td>', text, re.DOTALL)
    assert {name: plain(cost).strip() for name, cost in rows} == {
        "local": "$0.107",
        "silent": "n/a",
        "unused": "· not known",
    }


def test_what_is_hidden_in_a_name_is_shown(signed_in, version, project):
    make_target(project, "x\u202egpj.exe\x1b[31m<script>")
    text = signed_in().post(ADDRESS, given(targets=["x\u202egpj.exe\x1b[31m<script>"]), headers=FETCHED)
    assert "\u202e" not in text.content.decode()
    assert "<script>" not in text.content.decode()
    assert "--target" in text.content.decode()


def test_chips_narrow_the_run_and_keep_what_is_chosen(signed_in, large):
    client = signed_in()
    text = client.get(f"{ADDRESS}?suite=large&targets=local&trials=5&judge=false").content.decode()
    chips = dict(re.findall(r'<a class="chip" href="([^"]*)">(.*?)</a>', text))
    links = {plain(label).strip(): link.replace("&amp;", "&") for link, label in chips.items()}
    assert list(links) == ["smoke 6", "failed last time 1"]
    after = client.get(ADDRESS + links["failed last time 1"]).content.decode()
    assert re.search(r'name="only" value="c"', after)
    assert re.search(r'class="chip" aria-current="true"[^>]*>failed last time', after)
    assert "Start 5 trials" in after
    assert "checked" not in re.search(r'<input[^>]*name="judge"[^>]*>', after)[0]


def test_chips_follow_the_suite(signed_in, version, large):
    text = signed_in().post(ADDRESS, given(), headers=FETCHED).content.decode()
    assert '<div class="chips" id="only" hx-swap-oob="true">' in text
    assert "smoke <b>2</b>" in text


def test_the_target_that_a_suite_ran_on_last_is_chosen_unless_the_address_says_another(
    signed_in, version, project
):
    codex, claude = make_target(project, "codex"), make_target(project, "claude")
    for target in (codex, claude):
        past_run(version, target=target)
    past_run(make_suite(project, name="Second"), target=codex)
    client = signed_in()

    def chosen(query: str) -> list[str]:
        text = client.get(f"{ADDRESS}{query}").content.decode()
        return re.findall(r'name="targets" id="target-\d+" value="(\w+)" checked', text)

    assert chosen("?suite=basics") == ["claude"]
    assert chosen("?suite=second") == ["codex"]
    assert chosen("?suite=basics&targets=local&targets=codex") == ["codex", "local"]
    claude.accepted = False
    claude.save()
    assert chosen("?suite=basics") == []
