"""Stopping a run without losing it.

The first SIGINT (Ctrl-C, a notebook's stop button) or SIGTERM (a scheduler) asks for a stop: the step in progress is
finished and a checkpoint saved. The second stops at once. Only the main thread of a process hears signals; elsewhere a
run is stopped through the event that was handed to it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | None
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A context: inside it, `asked` says whether to stop, and `name` by what. Handlers are restored on leaving."""

    def __init__(self, event: threading.Event | None = None):
        self.event = event or threading.Event()
        self.signal: int | None = None
        self.before: dict[int, Handler] = {}

    @property
    def asked(self) -> bool:
        return self.event.is_set()

    @property
    def name(self) -> str:
        return signal.Signals(self.signal).name if self.signal else "request"

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._heard) for number in SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:  # the second time
            raise SystemExit(128 + number) if number == signal.SIGTERM else KeyboardInterrupt
        self.signal = number
        self.event.set()
