"""Whatever holds a trained model, opened by one word."""

from __future__ import annotations

from pathlib import Path

from .. import _checks as checks
from .. import deploy
from ..config import Config
from ..data import tokenizers
from ..language_model import LanguageModel
from .runs import Run

SHIPPED = Path(__file__).resolve().parents[1] / "shipped"


class Exported:
    """A file that `export` wrote, and the tokenizer beside it: what is left of a run where the model is used."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.model: LanguageModel = deploy.load(self.path)

    @property
    def cfg(self) -> Config:
        return self.model.cfg

    @property
    def tokenizer(self) -> tokenizers.Tokenizer:
        return tokenizers.open(tokenizer_beside(self.path))

    def __repr__(self) -> str:
        return f"Exported({str(self.path)!r})"


def load(source: str | Path) -> Run | Exported:
    """A run's folder, a file that `export` wrote, or the name of a run that comes with the package ("byte-lite").

    Each has `model`, `tokenizer` and `cfg`. A run has its record as well: `metrics`, `summary`, `data`."""
    path = Path(source)
    if path.is_file():
        return Exported(path)
    if path.is_dir():
        return Run(path)
    return shipped(str(source))


def shipped(name: str) -> Run:
    """A run that comes with the package: its record, its tokenizer, and its model in the deployed form."""
    names = sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())
    return Run(SHIPPED / checks.choice("source", name, [*names, "or the path of a run's folder or exported file"]))


def export(run: Run | Exported, path: str | Path) -> int:
    """Writes the run's model as it is deployed, and its tokenizer beside it; returns the size of the model's file."""
    run.tokenizer.save(tokenizer_beside(path))
    return deploy.export(run.model, path, run.tokenizer.identity())


def tokenizer_beside(path: str | Path) -> Path:
    return Path(path).with_suffix(".tokenizer.json")
