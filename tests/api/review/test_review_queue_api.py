"""The queue of judges' statements over REST."""

from __future__ import annotations

import pytest

from tests.builders import close, make_run, make_suite
from tests.runs.review.judged import judged_trial


@pytest.fixture
def run(project):
    made = make_run(make_suite(project, ("create",), name="Basics"))
    for n in range(6):
        judged_trial(made, passed=n < 3)
    return close(made)


def test_the_queue_groups_statements(api, project, run):
    group = next(
        each for each in api("viewer").get("/review-queue").json()["items"] if each["polarity"] == "negative"
    )
    assert (group["statements"], "assignee" in group) == (3, False)
    assert all(each["key"] and each["statements"] for each in group["wordings"])
