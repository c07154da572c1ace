"""How much of what an MLP adds to the stream a matrix could have added, in trained networks.

    python -m pspin_lite experiments linear-share --out FOLDER

Of every finished run of NETWORKS under --out, on held-out speeches: how large the two halves u and a of its field and
its spins y are (root mean square), and the share of the output's variance that the best affine map of the layer's input
explains. The map is fitted on every other window and judged on the rest. A layer with a share of one might as well be
a matrix.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from .. import _files as files
from ..language_model import LanguageModel
from ..training import branches, evaluation, runs
from . import jobs, networks, store

NAME = "linear-share"
NETWORKS = tuple(
    f"living-bytes/{name}"
    for name in ("p-spin", "tanh-sigmoid-full", "tanh-tanh-full", "tanh-silu-full", "linear-silu-full")
)
WINDOWS = 256  # of 128 bytes
Layers = list[dict[str, float]]


def of_model(model: LanguageModel, windows: Iterable[Tensor]) -> Layers:
    """By layer: u, g, y and share. windows: [1,T] each."""
    seen: list[dict[str, list[Tensor]]] = []
    hooks = []
    for mlp in branches.branches(model)["mlp"]:
        of_layer: dict[str, list[Tensor]] = dict(x=[], field=[], y=[], out=[])
        seen.append(of_layer)

        def field(module: nn.Module, inputs: tuple, output: Tensor, into: dict = of_layer) -> None:
            into["field"].append(output[0])

        def spins(module: nn.Module, inputs: tuple, output: Tensor, into: dict = of_layer) -> None:
            into["y"].append(inputs[0][0])

        def whole(module: nn.Module, inputs: tuple, output: Tensor, into: dict = of_layer) -> None:
            into["x"].append(inputs[0][0])
            into["out"].append(output[0])

        for one, hook in ((mlp.w_ext, field), (mlp.w_down, spins), (mlp, whole)):
            hooks.append(one.register_forward_hook(hook))
    try:
        with evaluation.evaluating(model):
            for tokens in windows:
                model.hidden(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return [_layer(**of_layer) for of_layer in seen]


def _layer(x: list[Tensor], field: list[Tensor], y: list[Tensor], out: list[Tensor]) -> dict[str, float]:
    u, g = torch.cat(field).chunk(2, -1)
    share = linear_share(*(torch.cat(part) for part in (x[::2], out[::2], x[1::2], out[1::2])))
    sizes = {name: part.pow(2).mean().sqrt().item() for name, part in dict(u=u, g=g, y=torch.cat(y)).items()}
    return sizes | dict(share=share)


def linear_share(x: Tensor, out: Tensor, other_x: Tensor, other_out: Tensor) -> float:
    """1 - the squared error of the affine map fitted to (x, out), over the variance of other_out. Rows are tokens."""
    ones = (torch.cat([part, torch.ones(len(part), 1)], -1).double() for part in (x, other_x))
    first, second = ones
    matrix = torch.linalg.lstsq(first, out.double()).solution
    other_out = other_out.double()
    error, variance = second @ matrix - other_out, other_out - other_out.mean(0)
    return 1 - (error.pow(2).sum() / variance.pow(2).sum()).item()


def measured(out: Path) -> dict[str, list[Layers]]:
    """Network -> a list of layers for each seed whose run is under `out`."""
    found: dict[str, list[Layers]] = {}
    for name in NETWORKS:
        for seed in networks.arm(*name.split("/")).seeds:
            folder = out / name / f"seed-{seed}"
            if (folder / "summary.json").is_file():
                run = runs.Run(folder)
                windows = (tokens for tokens, _ in run.data()["held-out"].windows(WINDOWS))
                found.setdefault(name, []).append([rounded(layer) for layer in of_model(run.model, windows)])
    if not found:
        raise files.FileError(f"{out}: no finished run of {', '.join(NETWORKS)}: train them first")
    return found


def rounded(layer: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.3g}") for name, value in layer.items()}


def again(name: str, folder: Path) -> dict:
    """-> the record. folder: one in --out, beside the runs' own."""
    command = f"python -m pspin_lite experiments {NAME}"
    return dict(command=command, environment=runs.environment(), networks=measured(folder.parent))


def means(record: dict) -> dict[str, float]:
    """Each network's share, over layers and seeds."""
    return {
        name: statistics.mean(layer["share"] for layers in seeds for layer in layers)
        for name, seeds in record["networks"].items()
    }


def main(name: str, out: Path) -> None:
    result = again(name, out / name)
    store.write(NAME, result, out / jobs.RECORDS)
    for network, share in means(result).items():
        print(f"{network:<32} a matrix explains {share:.0%}")
