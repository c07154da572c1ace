"""The widgets in a real browser: JupyterLab runs notebook 05, sliders move by keyboard, numbers follow. Those of later
notebooks come along: their cell is put at the end, behind the few lines that it needs.

Numbers in the page (data-name) are compared with those of the pure functions, not pixels. An exception in a slider's
callback appears in no cell, so the kernel's messages are listened to as well."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from helpers import CHROMIUM, needs_browser
from nbformat.v4 import new_code_cell

import pspin_lite as ps
from pspin_lite.lessons import explore_adam, explore_model, widgets
from pspin_lite.lessons import explore_attractor as explore
from pspin_lite.lessons.figures import catching_up, study
from pspin_lite.lessons.figures import eras as draw
from pspin_lite.study import continual, records

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOK = NOTEBOOKS / "05_attractor.ipynb"
LATER = {  # notebook -> what the cell with its widget needs
    "10_byte_run": """from ipywidgets import IntSlider
from pspin_lite.lessons.figures import training as draw
from pspin_lite.lessons.widgets import Explorer
by_order, levels = {"held-out": [4.4, 3.4, 2.7, 2.1, 1.7, 1.6, 1.6, 1.7]}, {"held-out": {"the network": 1.76}}
write_by_counts = lambda order: (f"a text of order {order}", 0.5)""",
    "12_what_does_the_work": "from pspin_lite.lessons.figures import study as draw",
    "11_subword_run": """from ipywidgets import Dropdown, SelectionSlider
from pspin_lite.lessons.figures.catching_up import PAIRS, UNITS, catching_up
from pspin_lite.lessons.widgets import Explorer""",
    "13_batch_size_one": """from ipywidgets import SelectionSlider
from pspin_lite.lessons import explore_adam
from pspin_lite.lessons.widgets import Explorer""",
    "14_continual_learning": """from ipywidgets import Dropdown
from pspin_lite.lessons.figures import eras, fades
from pspin_lite.lessons.widgets import Explorer
from pspin_lite.study import continual""",
}
CLASSES = {
    "10_byte_run": "counting",
    "12_what_does_the_work": "arms",
    "11_subword_run": "catching-up",
    "13_batch_size_one": "forgetful-adam",
    "14_continual_learning": "era",
}
RUN_ALL, PATIENCE = 600_000, 60_000  # milliseconds for all cells and for anything else, on a busy machine

pytestmark = needs_browser

LISTEN = """() => {
    const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    window.kernelErrors = [];
    kernel.iopubMessage.connect((_, message) => {
        if (message.header.msg_type === 'error') window.kernelErrors.push(message.content.evalue);
    });
}"""
FAIL = "() => { jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code: '1/0'}); }"
IDLE = "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab of its own, with settings of its own, on a copy of the notebook."""
    folder = tmp_path
    for name in ("app", "root/notebooks"):
        (folder / name).mkdir(parents=True)
    shutil.copytree(NOTEBOOKS.parent / "docs" / "here", folder / "root" / "docs" / "here")
    notebook = nbformat.read(NOTEBOOK, 4)
    for name, before in LATER.items():
        code = [cell.source for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4).cells if cell.cell_type == "code"]
        widget = next(i for i, source in enumerate(code) if f'"{CLASSES[name]}"' in source)
        ahead = [source for source in code[:widget] if re.search(r"^def (?:draw_\w+|after)\(", source, re.MULTILINE)]
        notebook.cells += map(new_code_cell, [before, *ahead, code[widget]])
    nbformat.write(notebook, folder / "root" / "notebooks" / NOTEBOOK.name)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (folder / "app" / "overrides.json").write_text(
        json.dumps(
            {
                "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
                "@jupyterlab/apputils-extension:notification": quiet,
                "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
            }
        )
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token, address = secrets.token_hex(8), f"http://127.0.0.1:{port}"
    own = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    options = [
        "--no-browser",
        "--allow-root",
        "--expose-app-in-browser",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder / 'root'}",
        f"--IdentityProvider.token={token}",
        f"--LabApp.app_settings_dir={folder / 'app'}",
        f"--LabApp.user_settings_dir={folder / 'user'}",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
    ]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            env=os.environ | own | {"IPYTHONDIR": str(folder / "ipython")},
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=5):
                    break
            except OSError:
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, "JupyterLab did not start within two minutes"
                time.sleep(0.3)
        yield f"{address}/doc/tree/notebooks/{NOTEBOOK.name}?token={token}&reset"
    finally:
        server.terminate()  # it shuts its kernels down
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture
def page(lab):
    """The notebook, every cell of it executed; `page.complaints` are the browser's errors."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=dict(width=1300, height=1000))
        page.complaints = []
        page.on("console", lambda said: said.type == "error" and page.complaints.append(said.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(lab, timeout=2 * PATIENCE)
        page.wait_for_function(IDLE, timeout=2 * PATIENCE)
        page.evaluate(LISTEN)
        page.set_default_timeout(RUN_ALL)
        ran = page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
        assert ran, f"a cell failed: {page.evaluate('() => window.kernelErrors')}"
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        page.set_default_timeout(PATIENCE)
        page.wait_for_selector(".attractor-model [data-name='it writes']")
        page.wait_for_selector(".counting [data-name='counts write']")
        page.wait_for_selector(".arms [data-name='p-spin, end']")
        page.wait_for_selector(".catching-up [data-name='times the text']")
        page.wait_for_selector(".forgetful-adam [data-name='w settles at']")
        page.wait_for_selector(".era [data-name='p-Spin: forgotten']")
        yield page
        browser.close()


def expect_numbers(box, numbers: dict[str, object]) -> None:
    """The table in the page shows these numbers, at the latest after a moment."""
    from playwright.sync_api import expect

    for name, number in numbers.items():
        expect(box.locator(f'[data-name="{name}"]')).to_have_text(widgets.write(number), timeout=PATIENCE)


def move(slider, key: str, times: int = 1) -> float:
    """Presses a key on a slider; the value it then has."""
    slider.focus()
    for _ in range(times):
        slider.press(key)
    return float(slider.get_attribute("aria-valuenow"))


def random_map(page) -> None:
    box = page.locator(".attractor-random")
    K, scale = (box.get_by_role("slider").nth(i) for i in range(2))
    now = dict(K=5, scale=2.0)
    expect_numbers(box, explore.draw_random(**now)[1])
    seen, picture = [box.locator('[data-name="residual at K"]').inner_text()], box.locator("svg").inner_html()
    for slider, name, key, times, value in (
        (K, "K", "ArrowRight", 1, 10),
        (scale, "scale", "ArrowRight", 2, 2.5),
        (K, "K", "End", 1, 20),
        (scale, "scale", "ArrowLeft", 1, 2.25),
        (scale, "scale", "End", 1, 6.0),
    ):
        move(slider, key, times)
        now[name] = value
        expect_numbers(box, explore.draw_random(**now)[1])
        seen.append(box.locator('[data-name="residual at K"]').inner_text())
    assert len(set(seen)) == len(seen), "every move changes what is shown"
    assert box.locator('[data-name="tokens that settle"]').inner_text() != "8 of 8"
    assert box.locator("svg").inner_html() != picture, "the picture follows too"


def two_spins(page) -> None:
    box = page.locator(".attractor-two")
    K, gamma, _ = (box.get_by_role("slider").nth(i) for i in range(3))
    now = dict(kind="agree", K=5, gamma=0.5, w=4.0)
    expect_numbers(box, explore.draw_two_spins(**now)[1])
    now["kind"] = "frustrated"
    box.get_by_role("combobox").select_option(now["kind"])
    now["K"] = move(K, "ArrowLeft")
    assert now["K"] == 4
    expect_numbers(box, explore.draw_two_spins(**now | dict(K=4))[1])
    assert move(gamma, "Home") == -0.5
    expect_numbers(box, explore.draw_two_spins(**now | dict(K=4, gamma=-0.5))[1])
    move(K, "Home")
    assert move(K, "ArrowRight", 20) == 20  # a quick burst of keys: the last one counts
    expect_numbers(box, explore.draw_two_spins(**now | dict(K=20, gamma=-0.5))[1])
    described = "all => all.length > 3 && all.every(one => one.alt.split(' ').length >= 8)"
    assert page.locator(".jp-OutputArea img").evaluate_all(described), "descriptions arrive"
    assert page.locator(".pspin-live").count() >= 2, "this notebook has live forms, for readers without a kernel"
    assert page.locator(".pspin-live:visible, .pspin-still:visible").count() == 0, "but a widget is not shown twice"


def the_whole_model(page) -> None:
    """K and gamma of the model that ships; its numbers from the same text."""
    run = ps.load("byte-lite")
    windows = run.data()["held-out"].windows(6)
    text = (torch.cat(part)[:, :256] for part in zip(*windows, strict=True))
    moves = (
        ("K", "ArrowRight", 1, (7, 1.0)),
        ("gamma", "End", 1, (7, 4.0)),
        ("K", "Home", 1, (0, 4.0)),
        ("K", "ArrowRight", 2, (2, 4.0)),
        ("gamma", "ArrowLeft", 2, (2, 2.0)),
    )
    points = [explore_model.USUAL, *(point for *_, point in moves)]
    draw = explore_model.draw_grid(explore_model.measure(run.model, run.tokenizer, *text, points))
    box = page.locator(".attractor-model")
    sliders = dict(zip(("K", "gamma"), box.get_by_role("slider").all(), strict=True))
    expect_numbers(box, draw(*explore_model.USUAL)[1])
    assert box.locator("mark").count() == 0, "nothing differs yet"
    sizes, pictures = {box.bounding_box()["height"]}, {box.locator("svg").inner_html()}
    for name, key, times, point in moves:
        move(sliders[name], key, times)
        expect_numbers(box, draw(*point)[1])
        assert box.locator("mark").count() == 2, "where the two texts part"
        sizes.add(box.bounding_box()["height"])
        pictures.add(box.locator("svg").inner_html())
    assert len(sizes) == 1, "nothing beneath the widget moves"
    assert len(pictures) == len(points)


def counting(page) -> None:
    """Of notebook 10: what counts of each order write."""
    box = page.locator(".counting")
    [slider] = box.get_by_role("slider").all()
    texts, height = set(), box.bounding_box()["height"]
    for key in ("Home", "ArrowRight", "End"):
        shown = f"counts of order {move(slider, key):.0f}:"
        page.wait_for_function(
            "shown => document.querySelector('.counting svg').textContent.includes(shown)", arg=shown
        )
        texts.add(box.locator('[data-name="counts write"]').inner_text())
        assert box.bounding_box()["height"] == height, "nothing beneath the widget moves"
    assert len(texts) == 3


def arms(page) -> None:
    """Of notebook 12: what is chosen is what is shown, over any axis."""
    box = page.locator(".arms")

    def ends(split: str) -> dict[str, float]:
        runs = {name: records.seeds("bytes-1", name).values() for name in study.COMPARED["the mixer"]}
        bits = {name: [records.curve(run, split)[1][-1] for run in seeds] for name, seeds in runs.items()}
        return {f"{name}, end": float(np.mean(values)) for name, values in bits.items()}

    differs, axis, split = box.get_by_role("combobox").all()
    differs.select_option("the mixer")
    expect_numbers(box, ends("held-out"))
    page.wait_for_function("() => !document.querySelector('.arms [data-name=\"swiglu, end\"]')")
    pictures = [box.locator("svg").inner_html()]
    for choice in ("arithmetic", "time"):
        axis.select_option(choice)
        page.wait_for_function(
            "before => document.querySelector('.arms svg').innerHTML !== before", arg=pictures[-1], timeout=PATIENCE
        )
        pictures.append(box.locator("svg").inner_html())
    split.select_option("recent")
    expect_numbers(box, ends("recent"))


def catching(page) -> None:
    """Of notebook 11: how much text or time batch size 64 takes to get as far."""
    box, draw = page.locator(".catching-up"), catching_up.catching_up("subwords")
    who, axis = box.get_by_role("combobox").all()
    expect_numbers(box, draw("Transformer", 7000, "text")[1])
    who.select_option("The diagonal")
    axis.select_option("time")
    slider = box.get_by_role("slider")
    slider.press("ArrowLeft")
    expect_numbers(box, draw("The diagonal", 6000, "time")[1])


def forgetful_adam(page) -> None:
    """Of notebook 13: where one weight settles."""
    box = page.locator(".forgetful-adam")
    beta2, one_in, batch = (box.get_by_role("slider").nth(i) for i in range(3))
    expect_numbers(box, explore_adam.draw_toy(0.95, 20, 1)[1])
    for slider, key, now in (
        (beta2, "End", (0.999, 20, 1)),
        (one_in, "End", (0.999, 50, 1)),
        (batch, "ArrowRight", (0.999, 50, 8)),
        (beta2, "Home", (0.8, 50, 8)),
    ):
        move(slider, key)
        expect_numbers(box, explore_adam.draw_toy(*now)[1])


def eras(page) -> None:
    """Of notebook 14: what each network has forgotten of an era, in each order."""
    box = page.locator(".era")
    year, order = box.get_by_role("combobox").all()
    for chosen, way in (("1803", "time"), ("1903", "time"), ("1903", "replay")):
        year.select_option(chosen)
        order.select_option(way)
        lost = {}
        for model in continual.models():
            runs = [continual.eras(run) for run in records.seeds("continual", f"{model}-{way}").values()]
            lost[f"{draw.NAMES[model]}: forgotten"] = float(
                np.mean([run.forgotten()[run.years.index(chosen)] for run in runs])
            )
        expect_numbers(box, lost)


def test_numbers_follow_the_keyboard(page):
    """One test, because the notebook is run once for all of it."""
    random_map(page)
    two_spins(page)
    the_whole_model(page)
    counting(page)
    arms(page)
    catching(page)
    forgetful_adam(page)
    eras(page)
    assert page.evaluate("() => window.kernelErrors") == []
    assert page.complaints == []
    assert page.locator(".widget-error").count() == 0
    page.evaluate(FAIL)
    page.wait_for_function("() => window.kernelErrors.includes('division by zero')")  # we do hear errors
