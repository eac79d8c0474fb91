"""What the browser's back and forward show after parts of a page were swapped."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import go_back
from tests.builders import make_run, make_suite


def test_back_and_forward_show_the_filters_that_are_in_force(
    as_admin: Page, live_server: Any, project: Any
) -> None:
    for name in ("Alpha", "Beta"):
        make_run(make_suite(project, name=name))
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    rows = as_admin.locator("#results tbody tr")
    alpha, beta = (as_admin.locator(f"input[name=suite][value={slug}]") for slug in ("alpha", "beta"))
    as_admin.locator("summary", has_text="Suite").first.click()
    for box, number in ((alpha, 1), (beta, 2)):
        box.check()
        as_admin.wait_for_url(f"**suite={box.get_attribute('value')}**")
        expect(rows).to_have_count(number)
    go_back(as_admin)
    expect(alpha).to_be_checked()
    expect(beta).not_to_be_checked()
    expect(rows).to_contain_text("Alpha")
    go_back(as_admin)
    expect(alpha).not_to_be_checked()
    expect(rows).to_have_count(2)
    as_admin.go_forward()
    expect(alpha).to_be_checked()
    expect(rows).to_have_count(1)


def test_signing_out_clears_what_the_browser_kept(as_admin: Page, live_server: Any, project: Any) -> None:
    make_run(make_suite(project, name="Secret"))
    as_admin.goto(f"{live_server.url}/p/tools/runs/")
    as_admin.locator("input[name=q]").nth(1).press_sequentially("sec")
    as_admin.wait_for_url("**q=sec**")
    as_admin.context.clear_cookies()
    as_admin.go_back()
    expect(as_admin.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(as_admin.get_by_text("Secret")).to_have_count(0)
