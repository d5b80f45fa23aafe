"""The page in a real browser: read, used by keyboard, in light and dark, wide and narrow.

Needs Chromium and its driver (`chromium`, `chromium-driver` on Debian), `selenium`, and for the
last part `axe-playwright-python`, for the axe-core in it. Where they are missing the tests are
skipped, unless REQUIRE_BROWSER is set, as `.ci/run pages` does.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main

NEEDED = bool(os.environ.get("REQUIRE_BROWSER"))
LIGHT, DARK = "light", "dark"


def need(there: object, what: str) -> None:
    if not there:
        (pytest.fail if NEEDED else pytest.skip)(f"{what} is not installed")


def module(name: str) -> Any:
    if NEEDED:
        import importlib

        return importlib.import_module(name)
    return pytest.importorskip(name)


@pytest.fixture(scope="module", name="browser")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    need(binary, "chromium")
    need(driver, "chromedriver (chromium-driver)")
    webdriver = module("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = module("selenium.webdriver.chrome.service").Service(driver)
    found = webdriver.Chrome(options=options, service=service)
    found.set_script_timeout(60)
    yield found
    found.quit()


@pytest.fixture(scope="module", name="page")
def _page(record: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("page") / "page.html"
    assert main(["report", str(record), "--html", str(target)]) == 1
    return target.as_uri()


@pytest.fixture(name="opened")
def _opened(browser: Any, page: str) -> Any:
    """The page at the size of a laptop's window, as if it were opened for the first time."""
    resize(browser, 1280, 800)
    scheme(browser, LIGHT)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page)
    return browser


def resize(browser: Any, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def scheme(browser: Any, name: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": name}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def evaluated(browser: Any, script: str) -> Any:
    return browser.execute_script(f"return {script}")


def press(browser: Any, key: str) -> None:
    keys = module("selenium.webdriver.common.keys").Keys
    module("selenium.webdriver").ActionChains(browser).send_keys(getattr(keys, key)).perform()


def focused(browser: Any) -> Any:
    return browser.switch_to.active_element


def visible(browser: Any, selector: str) -> bool:
    """Whether an element is whole within the window, without scrolling."""
    script = f"""(() => {{
        const box = document.querySelector({selector!r}).getBoundingClientRect();
        return box.top >= -1 && box.bottom <= innerHeight && box.right <= innerWidth;
    }})()"""
    return bool(evaluated(browser, script))


# ------------------------------------------------------------------------------------- reading


def test_the_first_screen_holds_all_five_answers(opened: Any) -> None:
    assert visible(opened, ".broke")
    assert visible(opened, ".answers")
    shown = opened.find_element("css selector", ".answers").text
    names = ("Whose it is", "Since", "How many", "What to do now")
    assert [shown.index(name) for name in names] == sorted(shown.index(name) for name in names)


def test_nothing_is_loaded_and_nothing_is_complained_about(opened: Any, page: str) -> None:
    import json

    assert opened.get_log("browser") == []
    messages = [json.loads(line["message"])["message"] for line in opened.get_log("performance")]
    asked = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert asked <= {page}


def test_the_fate_of_a_block_is_told_in_words_and_in_colour(opened: Any) -> None:
    cell = opened.find_element("css selector", ".strip td.breaks")
    around = evaluated(opened, "getComputedStyle(document.body).backgroundColor")
    assert cell.value_of_css_property("background-color") != around
    fates = [x.text for x in opened.find_elements("css selector", ".strip tr:last-child .breaks")]
    assert fates != []
    assert all(fates)


def test_dark_is_dark_and_light_is_light(opened: Any) -> None:
    def ground() -> int:
        color = evaluated(opened, "getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in color.strip("rgba()").split(",")[:3])

    light = ground()
    scheme(opened, DARK)
    assert light > 600
    assert ground() < 150


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_a_page_never_scrolls_sideways(opened: Any, width: int) -> None:
    """Wide tables do, each by itself."""
    resize(opened, width, 800)
    assert evaluated(opened, "document.documentElement.scrollWidth") <= width


# ------------------------------------------------------------------------------------- using


def test_the_first_key_reaches_a_link_to_the_report(opened: Any) -> None:
    press(opened, "TAB")
    assert focused(opened).text == "Skip to the report"
    assert focused(opened).is_displayed()
    press(opened, "ENTER")
    assert focused(opened).get_attribute("id") == "main"


def test_every_thing_to_use_is_reached_by_keyboard_and_shows_it(opened: Any) -> None:
    reached = []
    for _ in range(12):
        press(opened, "TAB")
        here = focused(opened)
        reached.append(here.tag_name)
        assert here.value_of_css_property("outline-style") != "none"
    assert {"a", "div", "button", "summary"} <= set(reached)


def test_the_button_copies_the_bug_report_by_keyboard(opened: Any) -> None:
    opened.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    button = opened.find_element("css selector", "button[data-copies]")
    assert button.accessible_name == "Copy a bug report without content"
    evaluated(opened, "document.querySelector('button[data-copies]').focus()")
    press(opened, "ENTER")
    status = opened.find_element("id", "told-1")
    wait = module("selenium.webdriver.support.wait").WebDriverWait(opened, 10)
    wait.until(lambda _: status.text)
    assert status.text == "Copied."
    assert status.aria_role == "status"
    copied = opened.execute_async_script(
        "const told = arguments[0];"
        "navigator.clipboard.readText().then(told, error => told(`not readable: ${error}`));"
    )
    assert copied == evaluated(opened, "document.getElementById('bug-1').textContent")
    assert copied.startswith("### ")


def test_without_the_clipboard_the_text_is_shown_and_selected(opened: Any) -> None:
    opened.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    opened.find_element("css selector", "button[data-copies]").click()
    wait = module("selenium.webdriver.support.wait").WebDriverWait(opened, 10)
    wait.until(lambda _: opened.find_element("id", "told-1").text)
    assert opened.find_element("id", "bug-1").is_displayed()
    assert evaluated(opened, "window.getSelection().toString()").startswith("### ")


def test_without_scripts_there_is_all_but_the_button(browser: Any, page: str) -> None:
    resize(browser, 1280, 800)
    switch = "Emulation.setScriptExecutionDisabled"
    browser.execute_cdp_cmd(switch, {"value": True})
    try:
        browser.get(page)
        assert not browser.find_element("css selector", "button[data-copies]").is_displayed()
        assert browser.find_element("css selector", ".answers").is_displayed()
    finally:
        browser.execute_cdp_cmd(switch, {"value": False})


def test_a_link_leads_to_its_part(opened: Any) -> None:
    opened.find_element("link text", "Silent loss").click()
    wait = module("selenium.webdriver.support.wait").WebDriverWait(opened, 10)
    wait.until(lambda _: visible(opened, "#silent"))


# -------------------------------------------------------------------------------- screen readers


def test_the_parts_have_roles_and_names(opened: Any) -> None:
    def roles(selector: str) -> set[tuple[str, str]]:
        found = opened.find_elements("css selector", selector)
        return {(x.aria_role, x.accessible_name) for x in found}

    assert {("banner", ""), ("main", ""), ("contentinfo", "")} == roles("header, main, footer")
    assert ("navigation", "On this page") in roles("nav")
    assert ("region", "How it broke") in roles("section")
    assert ("image", "Reasoning tokens a call: ") not in roles("svg")
    assert all(name for _, name in roles("svg, .scroll, section, nav"))


@pytest.mark.parametrize("name", [LIGHT, DARK])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing(opened: Any, name: str, width: int) -> None:
    """Contrast, names, roles, order of headings, landmarks: every rule of axe-core that applies."""
    source = files(module("axe_playwright_python")).joinpath("axe.min.js").read_text("utf-8")
    scheme(opened, name)
    resize(opened, width, 800)
    opened.execute_script("document.querySelectorAll('details').forEach(x => { x.open = true; })")
    opened.execute_script(source)
    found = opened.execute_async_script(
        "const told = arguments[0]; axe.run().then(told, error => told({error: `${error}`}));"
    )
    assert found["passes"] != []
    assert [
        (rule["id"], rule["nodes"][0]["target"], rule["nodes"][0]["failureSummary"])
        for rule in found["violations"]
    ] == []
