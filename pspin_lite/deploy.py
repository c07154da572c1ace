"""Writing a trained model as one packed file of the size that the paper's table promises, and decoding from that file.

    export(model, "model.safetensors")        # from a trained model, or from a loaded one
    model = load("model.safetensors")         # eval mode; forward, loss, prefill and step as ever, faster at batch 1

In the file
    embedding.weight      float32    the tied embedding
    X.packed, X.scale     uint8, float32    of each ternary matrix X: four weights a byte, and the scale of all of them
    everything else       float16    state-space matrices, W_down, norms, gamma_param; of a Transformer all but the
                                     embedding
    in the header         the format's version, the configuration and, if given, the identity of the tokenizer, as JSON;
                          a SHA-256 of everything (see `files`)

The tensors take the bytes of `footprint(cfg)` and four more for each ternary matrix; the header some kilobytes.

Why float16 and not bfloat16: weights stay far from float16's limits (export checks), and it rounds eight times as
finely. byte-lite after 600 steps, on text it has not seen: loss + 5e-6 nats a byte and a divergence from the float32
model's predictions of 1.6e-7; with bfloat16 + 2e-5 and 1.2e-5.

Loading needs torch, safetensors and einops, nothing else. What comes out is the model's own class with its linear
layers exchanged for those of `fast_linear`; it has no gradients.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from . import _checks as checks
from . import _files as files
from . import attractor, config, ternary
from ._fast_linear import HalfLinear, TernaryCodes
from .config import Config
from .language_model import LanguageModel
from .model import Attractor
from .ternary import TernaryLinear
from .variants import build

FORMAT = 1
KIND = "pspin_lite deployed model"


def export(model: LanguageModel, path: str | Path, tokenizer_identity: dict | None = None) -> int:
    """Writes the deployed form; returns the file's size in bytes. A loaded model is written as it was loaded."""
    if not isinstance(model, LanguageModel):
        expected = "a p-Spin network or another from build or load (not its torch.compile wrapper)"
        raise checks.wrong("model", type(model).__name__, expected)
    if tokenizer_identity is None:
        tokenizer_identity = getattr(model, "tokenizer_identity", None)
    tensors = getattr(model, "stored", None) or deployed_tensors(model)
    about = dict(format=f"{KIND} {FORMAT}", config=json.dumps(config.to_dict(model.cfg)))
    if tokenizer_identity is not None:
        about["tokenizer"] = json.dumps(tokenizer_identity, sort_keys=True)
    files.write_tensors(path, tensors, about)
    return os.stat(path).st_size


@torch.no_grad()
def deployed_tensors(model: LanguageModel) -> dict[str, Tensor]:
    """What `export` writes, by name."""
    layers = dict(model.named_modules())
    tensors = {}
    for name, weight in model.named_parameters():
        layer, _, _ = name.rpartition(".")
        if name == "embedding.weight":
            tensors[name] = weight.float()
        elif isinstance(layers[layer], TernaryLinear):
            codes, scale = ternary.quantize(weight.float())
            tensors[f"{layer}.packed"], tensors[f"{layer}.scale"] = ternary.pack(codes), scale
        else:
            tensors[name] = weight.half()
            if not bool(tensors[name].isfinite().all()):
                came = f"{name} with entries up to {weight.abs().max().item():g}"
                raise checks.wrong("model", came, "finite weights that float16 can hold, up to 65504")
    return tensors


class _NoInit(TorchFunctionMode):
    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)


def layout(cfg: Config) -> LanguageModel:
    """A model without numbers: no memory, no random draws (on the meta device those would import half of torch)."""
    with torch.device("meta"), _NoInit():
        return build(cfg)


def expected_tensors(model: LanguageModel) -> files.Expected:
    """Names, shapes and types in the file of such a model."""
    expected: files.Expected = {}
    for name, weight in model.named_parameters():
        layer, _, _ = name.rpartition(".")
        if isinstance(model.get_submodule(layer), TernaryLinear):
            rows, columns = weight.shape
            expected[f"{layer}.packed"] = (rows, -(-columns // 4)), torch.uint8
            expected[f"{layer}.scale"] = (), torch.float32
        else:
            expected[name] = tuple(weight.shape), torch.float32 if name == "embedding.weight" else torch.float16
    return expected


def load(path: str | Path) -> LanguageModel:
    """A model from a file that `export` wrote. Anything else is a files.FileError that says what is wrong."""
    tensors, about = files.read_tensors(path)
    _check_format(path, about)
    try:
        cfg = config.from_dict(json.loads(about["config"]))
        tokenizer_identity = json.loads(about.get("tokenizer", "null"))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise files.FileError(f"{path}: its configuration is of no use: {error}") from error
    if cfg.layers > len(tensors):  # before a model of a million layers is laid out
        raise files.FileError(f"{path}: does not fit: {len(tensors)} tensors for {cfg.layers} layers")
    try:
        model = layout(cfg)
    except (RuntimeError, ValueError, OverflowError, TypeError) as error:  # sizes beyond all measure
        reason = str(error).partition("\n")[0]
        raise files.FileError(f"{path}: its configuration is of no use: {reason}") from error
    files.check_tensors(path, tensors, expected_tensors(model))
    try:
        _fill(model, tensors)
    except ValueError as error:  # two bits that are no ternary weight
        raise files.FileError(f"{path}: {error}") from error
    model.stored, model.tokenizer_identity = tensors, tokenizer_identity
    return model


def _check_format(path: str | Path, about: dict[str, str]) -> None:
    match = re.fullmatch(re.escape(KIND) + r" (\d{1,9})", about.get("format", ""))
    if match is None:
        advice = "expected one that `pspin_lite.deploy.export` wrote"
        raise files.FileError(f"{path}: not a deployed model (format {about.get('format')!r}), {advice}")
    if (version := int(match[1])) != FORMAT:
        age = "newer" if version > FORMAT else "older"
        advice = f"update pspin_lite to the {age} version that wrote it, or export the model again with this one"
        raise files.FileError(f"{path}: deployed model of format {version}, this version reads {FORMAT}: {advice}")


def _fill(model: LanguageModel, tensors: dict[str, Tensor]) -> None:
    model.embedding.weight = nn.Parameter(tensors["embedding.weight"], requires_grad=False)
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.RMSNorm):
            layer.weight = nn.Parameter(tensors[f"{name}.weight"].float(), requires_grad=False)
        elif isinstance(layer, TernaryLinear):
            codes = ternary.unpack(tensors[f"{name}.packed"], tuple(layer.weight.shape))
            model.set_submodule(name, TernaryCodes(codes, tensors[f"{name}.scale"]))
        elif isinstance(layer, nn.Linear) and layer.bias is None:
            model.set_submodule(name, HalfLinear(tensors[f"{name}.weight"]))
    for name, layer in list(model.named_modules()):
        if isinstance(layer, Attractor):
            model.set_submodule(name, DeployedAttractor(layer, tensors[f"{name}.gamma_param"].float()))
    for name, _ in list(model.named_parameters()):
        if name in tensors:  # what variants have besides: convolutions, gates that start open
            layer, _, last = name.rpartition(".")
            setattr(model.get_submodule(layer), last, nn.Parameter(tensors[name].float(), requires_grad=False))
    model.eval().requires_grad_(False)


class DeployedAttractor(nn.Module):
    """`model.Attractor` over a coupling matrix that is not there as a matrix of floats."""

    damping: Tensor

    def __init__(self, trained: Attractor, gamma_param: Tensor):
        super().__init__()
        self.cfg, self.w_ext, self.w_int, self.w_down = trained.cfg, trained.w_ext, trained.w_int, trained.w_down
        self.gate = trained.gate
        trained.gamma_param = nn.Parameter(gamma_param, requires_grad=False)
        self.register_buffer("damping", trained.gamma(), persistent=False)  # Eq. spin-gamma

    def forward(self, x: Tensor) -> Tensor:
        z = self.w_ext(x).flatten(0, -2)  # Eq. spin-drive, a row a token

        def step(y: Tensor, rows: Tensor | None) -> Tensor:
            field = self.w_int(y * self.damping).add_(z if rows is None else z[rows])  # Eq. spin-field
            return attractor.spin(field, self.gate)

        y, _, _ = attractor.iterate(step, attractor.spin(z, self.gate), self.cfg.micro_steps, self.cfg.tol)
        return self.w_down(y).view_as(x)

    def gamma(self) -> Tensor:
        return self.damping
