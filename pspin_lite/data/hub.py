"""The hub (huggingface.co): is it there? Asked before anything is fetched, because its libraries retry for 20 seconds.

Nothing here ever puts another corpus or tokenizer in the place of the one that was asked for.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

HUB = "https://huggingface.co"
SECONDS = 2.0  # for the question; with the start of Python and the imports, an answer within five


class OutOfReach(ConnectionError):
    """Wanted from the hub, not to be had: one sentence with the command that needs no hub."""

    def __init__(self, wanted: str, instead: str, why: str = "the hub is out of reach") -> None:
        super().__init__(f"{wanted} is wanted, but {why}; what is built in needs no network: {instead}")


def offline() -> bool:
    """Told not to use the network at all, in the libraries' own way."""
    return any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in _SWITCHES)


def require(wanted: str, instead: str) -> None:
    """Raises OutOfReach within SECONDS unless the hub answers."""
    if offline():
        raise OutOfReach(wanted, instead, "HF_HUB_OFFLINE is set and it is not in the local cache")
    if not reachable():
        raise OutOfReach(wanted, instead)


def address() -> str:
    return os.environ.get("HF_ENDPOINT", HUB)


def reachable(seconds: float = SECONDS) -> bool:
    """Asks the hub for anything at all, through a proxy if one is set; in a thread, as a name look-up has no limit."""
    answered = threading.Event()

    def ask() -> None:
        try:
            urllib.request.urlopen(urllib.request.Request(address(), method="HEAD"), timeout=seconds).close()
        except urllib.error.HTTPError:
            pass  # it answered, if only to refuse
        except Exception:
            return
        answered.set()

    if offline():
        return False
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return answered.is_set()


@contextlib.contextmanager
def quiet(library: str) -> Iterator[None]:
    """No progress bars from `library`, datasets or huggingface_hub; the setting of whoever called is put back."""
    bars = importlib.import_module(f"{library}.utils")
    shown = not bars.are_progress_bars_disabled()
    bars.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bars()


_SWITCHES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
