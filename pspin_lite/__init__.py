"""pspin_lite: the p-Spin Glass Network, explained and implemented. Start with notebooks/00_start_here.ipynb.

Names are loaded on first use, so that `python -m pspin_lite doctor` can speak even where torch does not import.
"""

import importlib

__version__ = "0.1.0"
_MODULES = (
    "attractor",
    "corpora",
    "deploy",
    "metrics",
    "sequences",
    "state_space",
    "ternary",
    "tokenizers",
)
_HOME = {
    "Config": "config",
    "PSpinConfig": "config",
    "TransformerConfig": "config",
    "preset": "config",
    "presets": "config",
    "build": "language_model",
    "PSpinLM": "model",
    "TransformerLM": "transformer",
    "footprint": "costs",
    "train": "training",
    "resume": "training",
    "Run": "runs",
    "evaluate": "evaluation",
    "generate": "generation",
    "stream": "generation",
    "trained": "runs",
}
__all__ = sorted([*_MODULES, *_HOME])


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
