"""What nbval does not look at: notebooks under test have no network, and take no longer than they say.

A notebook's time is the CPU time of its kernel and of what that has started, which depends less than any other on what
else the machine does, as long as idle threads sleep (OpenMP's spin, unless told otherwise); the reader's two cores have
twice the stated time of it to give.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil
import pytest

OFFLINE = Path(__file__).resolve().parent.parent / "tests" / "offline"
SECONDS = {"half a minute": 30, "a minute": 60, "two minutes": 120}
TIME = re.compile(
    r"\*\*Time\*\*: (?:about |under |less than )?([a-z ]+?) on two CPU cores"
)


def stated(notebook) -> int:
    """Seconds, from the opening cell."""
    found = TIME.search(notebook.cells[0].source)
    if found is None or found[1] not in SECONDS:
        raise ValueError(
            f"the opening cell must say '**Time**: X on two CPU cores', X one of {', '.join(SECONDS)}"
        )
    return SECONDS[found[1]]


def pytest_configure(config) -> None:
    before = os.environ.get(
        "PYTHONPATH"
    )  # kernels inherit it; a fixture would not do, cells have none
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(OFFLINE), *([before] if before else [])]
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    cpu = None
    last = nextitem is None or nextitem.parent is not item.parent
    if last and getattr(item.parent, "kernel", None) is not None:
        used = psutil.Process(item.parent.kernel.km.provisioner.pid).cpu_times()
        cpu = used.user + used.system + used.children_user + used.children_system
    result = yield
    if cpu is not None and cpu > 2 * stated(item.parent.nb):
        pytest.fail(
            f"{item.parent.name}: {cpu:.0f} s of CPU time, more than two cores have in {stated(item.parent.nb)} s"
        )
    return result
