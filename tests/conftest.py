"""Every test run has a cache of its own: nothing a test computes is found by a reader, or hidden from a test by one."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import faulty
import pytest
import torch
from helpers import data_files

import pspin_lite

LONG = (  # a test takes 10 s and more
    "test_compiled.py",
    "test_lesson_compiled.py",
    "test_kernels_compile.py",
    "test_book.py",
    "test_browser.py",
    "test_types.py",
)

CHIP = os.environ.get("PSPIN_CHIP")  # "sm_80": kernels are compiled for that chip, and the emulator executes them


def pytest_configure(config):
    if CHIP:
        os.environ["PSPIN_KERNELS"] = "compile"
        os.environ.pop("TRITON_INTERPRET", None)
        gc.disable()  # kernels, once parsed, are millions of objects: looking at all of them again and again takes long
        from pspin_lite.tools.emulator.driver import chip

        config.chip = contextlib.ExitStack()
        config.chip.enter_context(chip(CHIP))


def pytest_unconfigure(config):
    if CHIP:
        config.chip.close()


def pytest_sessionfinish():
    if CHIP:
        gc.freeze()


def pytest_collection_modifyitems(items):
    """The longest first, so that no worker is alone with one at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)
    gc.freeze()  # what is imported by now stays: it is not looked at again and again


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        base = tmp_path_factory.getbasetemp()
        shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # a tokenizer is trained once for all
        patch.setenv("PSPIN_CACHE", str(shared / "cache"))
        yield


@pytest.fixture(autouse=True, scope="session")
def package_is_left_alone():
    """Whatever the tests do, the package writes nothing into its own folder."""
    folder = Path(pspin_lite.__path__[0])
    before = data_files(folder)
    yield
    after = data_files(folder)
    changed = sorted(path for path in before | after if before.get(path) != after.get(path))
    assert not changed, f"written into the package's folder while the tests ran: {changed}"


@pytest.fixture(autouse=True)
def own_threads():
    """A test that asks for more threads does not slow down those that come after it."""
    threads = torch.get_num_threads()
    yield
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    """A corpus of a few short files."""
    return faulty.corpus(tmp_path_factory.mktemp("texts") / "corpus")
