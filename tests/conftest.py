"""Every test run has a cache of its own: nothing a test computes is found by a reader, or hidden from a test by one."""

from __future__ import annotations

import faulty
import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSPIN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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
