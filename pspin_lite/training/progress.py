"""What a training run shows while it runs: a bar in a terminal or a notebook; in a log one line a validation."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

SMOOTH = 0.98  # weight of the past in the smoothed loss


class Progress:
    """Call `step` after every step. show: "auto" shows a bar if somebody is there to watch."""

    def __init__(self, total: int, start: int, bytes_a_token: float | None, show: bool | str = "auto"):
        watched = sys.stderr.isatty() or (_notebook() and not os.environ.get("CI"))
        self.speaks = show is not False
        self.bar: Any = None
        if show is True or (show == "auto" and watched):
            self.bar = _bar(total, start)
        self.bytes_a_token, self.residual = bytes_a_token, math.nan
        self.smooth: float | None = None

    def step(self, loss: float, norm: float, tokens_a_second: float, attractor_steps: float | None) -> None:
        self.smooth = loss if self.smooth is None else SMOOTH * self.smooth + (1 - SMOOTH) * loss
        if self.bar is None:
            return
        words = [f"loss {loss:.3f}", f"smooth {self.smooth:.3f}"]
        if self.bytes_a_token:
            words.append(f"{self.smooth / math.log(2) / self.bytes_a_token:.3f} bits/byte")
        words += [f"{tokens_a_second:.0f} tokens/s", f"|g| {norm:.2f}"]
        if attractor_steps is not None:
            words.append(f"K {attractor_steps:.1f}")
        if not math.isnan(self.residual):
            words.append(f"residual {self.residual:.0e}")
        self.bar.set_postfix_str(", ".join(words), refresh=False)
        self.bar.update()

    def say(self, line: str) -> None:
        if not self.speaks:
            return
        if self.bar is None:
            print(line, flush=True)
        else:
            self.bar.write(line)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _bar(total: int, start: int) -> Any:
    """None where tqdm is not installed: then there are lines, as in a log."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, initial=start, unit="step", dynamic_ncols=True, smoothing=0.05)


def _notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"
