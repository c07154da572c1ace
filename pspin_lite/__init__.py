"""pspin_lite: the p-Spin Glass Network, explained and implemented. Start with notebooks/00_start_here.ipynb.

Names are loaded on first use, so that `python -m pspin_lite doctor` can speak even where torch does not import.
"""

import importlib
from typing import Any

__version__ = "0.2.0"
_MODULES = {
    "attractor": "attractor",
    "corpora": "data.corpora",
    "costs": "costs",
    "deploy": "deploy",
    "fixed_points": "fixed_points",
    "metrics": "training.metrics",
    "recipe": "training.recipe",
    "sequences": "data.sequences",
    "state_space": "state_space",
    "ternary": "ternary",
    "tokenizers": "data.tokenizers",
}
_HOME = {
    "Config": "config",
    "PSpinConfig": "config",
    "TransformerConfig": "config",
    "preset": "config",
    "presets": "config",
    "build": "variants",
    "PSpinLM": "model",
    "TransformerLM": "transformer",
    "footprint": "costs",
    "train": "training.train",
    "resume": "training.train",
    "Run": "training.runs",
    "evaluate": "training.evaluation",
    "generate": "generation",
    "stream": "generation",
    "load": "training.load",
}
__all__ = sorted([*_MODULES, *_HOME])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
