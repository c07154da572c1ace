"""How much of an MLP a matrix explains: by hand, on networks that are linear, and as a command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

import pspin_lite as ps
from pspin_lite import _files as files
from pspin_lite.cli import main
from pspin_lite.study import experiments, linear_share, store
from pspin_lite.training import branches

CFG = ps.preset("byte-mended").replace(width=16, heads=2, inner=12, layers=2)


def test_a_matrix_is_explained_and_a_product_is_not():
    torch.manual_seed(0)
    x, matrix = torch.randn(4000, 5), torch.randn(5, 3)
    affine, product = x @ matrix + 2, x[:, :3] * x[:, 2:]
    half = slice(0, 2000), slice(2000, 4000)
    shares = [
        linear_share.linear_share(x[half[0]], out[half[0]], x[half[1]], out[half[1]]) for out in (affine, product)
    ]
    assert shares[0] == pytest.approx(1)
    assert abs(shares[1]) < 0.05, "x y has no linear part, as long as x and y are independent"
    mixed = linear_share.linear_share(x[half[0]], product[half[0]] + affine[half[0]], x[half[1]], affine[half[1]])
    assert 0.9 < mixed < 0.9999, "fitted on one half, judged on the other"


def test_layers_of_a_network():
    torch.manual_seed(1)
    model = ps.build(CFG)
    windows = list(torch.randint(256, (24, 1, 32)))
    curved = linear_share.of_model(model, windows)
    for mlp in branches.branches(model)["mlp"]:
        mlp.of_u, mlp.of_g = torch.clone, torch.ones_like
    flat = linear_share.of_model(model, windows)
    assert len(curved) == len(flat) == 2
    assert [layer["share"] for layer in flat] == pytest.approx([1, 1])
    assert all(layer["share"] < 0.5 for layer in curved)
    first = model.blocks[0]
    with torch.no_grad():
        x = torch.cat([model.embedding(tokens) for tokens in windows])
        u = first.mlp.w_ext(first.norm_mlp(x + first.mixer(first.norm_mixer(x), None)[0])).chunk(2, -1)[0]
    assert flat[0]["u"] == pytest.approx(u.pow(2).mean().sqrt().item(), rel=1e-4)
    assert flat[0]["y"] == flat[0]["u"], "the spins are u itself"


@pytest.fixture
def trained(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(store._Current, "store", store.Store(tmp_path / "published"))
    monkeypatch.setattr(linear_share, "NETWORKS", ("smoke/p-spin",))
    monkeypatch.setattr(linear_share, "WINDOWS", 8)
    settings = dict(validate_every=10**9, validate_tokens=256, final_tokens=256)
    ps.train("byte-smoke", tmp_path / "smoke" / "p-spin" / "seed-1", **settings)
    return tmp_path


def test_the_command(trained, capsys):
    assert main(["experiments", "linear-share", "--out", str(trained)]) == 0
    record = files.read_json(trained / "records" / "linear-share.json")
    ((layers,),) = record["networks"].values()
    assert [set(layer) for layer in layers] == [{"u", "g", "y", "share"}] * 2
    (share,) = linear_share.means(record).values()
    assert share == pytest.approx(sum(layer["share"] for layer in layers) / 2)
    assert f"a matrix explains {share:.0%}" in capsys.readouterr().out
    assert main(["experiments", "--list", "linear-share", "--out", str(trained)]) == 0
    assert f"p-spin {share:.0%}" in capsys.readouterr().out
    assert linear_share.again("linear-share", trained / "linear-share-again-1")["networks"] == record["networks"]
    assert "linear-share" in experiments.apart()


def test_without_runs(trained, capsys):
    shutil.rmtree(trained / "smoke")
    assert main(["experiments", "linear-share", "--out", str(trained)]) == 1
    assert "no finished run of smoke/p-spin: train them first" in capsys.readouterr().err
