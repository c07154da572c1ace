"""The deployed form: its size, its numbers, its speed, and every file that is refused."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers import error, message

import pspin_lite as ps
from pspin_lite import _fast_linear as fast_linear
from pspin_lite import _files as files
from pspin_lite import config, deploy
from pspin_lite._files import FileError

TINY = ps.preset("byte-lite").replace(width=24, heads=2, inner=10, layers=2)  # 10: a last byte of two codes
BASELINE = ps.preset("transformer-lite").replace(vocab=60, width=16, layers=2, inner=12)
VARIANT = ps.preset("byte-mended").replace(width=24, heads=2, inner=10, layers=2)
COUPLED = VARIANT.replace(mlp="attractor", gamma_range=1.0, gate="spread", norm_qk=True, norm_state=True)
IDENTITY = dict(name="bytes", vocab=256, sha256="0" * 64)


def made(cfg, seed=0):
    """A model whose norms and gammas are not all the same."""
    torch.manual_seed(seed)
    model = ps.build(cfg).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                p.add_(0.3 * torch.randn_like(p))
            elif name == "embedding.weight":
                p.mul_(5)
    return model


@pytest.fixture
def path(tmp_path) -> Path:
    deploy.export(made(TINY), tmp_path / "model.safetensors", IDENTITY)
    return tmp_path / "model.safetensors"


@pytest.fixture
def fast(monkeypatch):
    """Even small matrices take the fast products."""
    if not fast_linear.has_fbgemm():
        pytest.skip("FBGEMM is written for x86 with AVX2; without it plain products serve, and are tested above")
    monkeypatch.setattr(fast_linear, "SMALL", 1)


def rounded(model):
    """The model with the numbers that the file holds, computing in float32 as ever."""
    kept = {f"{n}.weight" for n, layer in model.named_modules() if isinstance(layer, ps.ternary.TernaryLinear)}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name not in {"embedding.weight", *kept}:
                p.copy_(p.half())
    return model


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("products", ["float32", "fast"])
@pytest.mark.parametrize(
    "cfg",
    [
        *(TINY, TINY.replace(tol=1e-3), TINY.replace(micro_steps=0), TINY.replace(implicit=False), BASELINE),
        *(VARIANT.replace(norm_down=True, output_gate=True), COUPLED, VARIANT.replace(mixer="long state space")),
        *(VARIANT.replace(mixer="attention", output_gate=True), VARIANT.replace(mlp="attractor", ternary=False)),
    ],
    ids=[
        *("p-spin", "early stopping", "K = 0", "unrolled", "transformer"),
        *("mended", "mended attractor", "open gate", "gated attention", "full precision"),
    ],
)
def test_loaded_model_computes_what_the_trained_one_does(cfg, products, tmp_path, request):
    if products == "fast":
        request.getfixturevalue("fast")
    model = made(cfg)
    deploy.export(model, tmp_path / "x")
    loaded = deploy.load(tmp_path / "x")
    assert not loaded.training
    assert not any(p.requires_grad for p in loaded.parameters())
    assert loaded.cfg == cfg
    tokens = torch.randint(cfg.vocab, (3, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        result, near, exact = loaded(tokens), model(tokens), rounded(model)(tokens)
        assert error(result, near) < 1e-2
        assert error(result, exact) < (2e-6 if products == "float32" else 2e-4)
        assert loaded.loss(tokens, tokens).item() == pytest.approx(model.loss(tokens, tokens).item(), rel=1e-4)
    logits, state = loaded.prefill(tokens[:, :30])
    for t in range(30, 40):
        logits, state = loaded.step(tokens[:, t], state)
    assert error(logits, result[:, -1]) < 1e-5, "one token at a time"


def test_no_token_changes_another(fast, path):
    """The digits of a token's activations are its own."""
    loaded = deploy.load(path)
    tokens = torch.randint(256, (2, 20), generator=torch.Generator().manual_seed(0))
    other = tokens.clone()
    other[:, 12:] = 3
    with torch.no_grad():
        assert torch.equal(loaded(tokens)[:, :12], loaded(other)[:, :12])


def test_two_digits_are_worth_sixteen_bits(fast):
    rng = torch.Generator().manual_seed(0)
    codes = torch.randint(-1, 2, (30, 513), generator=rng, dtype=torch.int8)
    x = torch.randn(2, 3, 513, generator=rng) * torch.tensor([1e-30, 1e-3, 1e4]).view(3, 1)
    x[0, 0] = 0.0
    layer = fast_linear.TernaryCodes(codes, torch.tensor(0.37))
    assert layer.packed is not None
    result, exact = layer(x), x.double() @ (codes.double() * float(torch.tensor(0.37))).T
    assert result.shape == (2, 3, 30)
    for i in range(2):
        for j in range(3):
            assert error(result[i, j], exact[i, j]) < 1e-4
    assert torch.equal(layer(x[:, 1:2]), result[:, 1:2]), "to the bit, whatever else is in the batch"
    assert torch.equal(layer.quantized(), codes * torch.tensor(0.37)), "and out again, to look at"


def test_half_weights_keep_float32_activations(fast):
    rng = torch.Generator().manual_seed(0)
    weight = torch.randn(40, 300, generator=rng).half()
    x = torch.randn(2, 5, 300, generator=rng)
    layer = fast_linear.HalfLinear(weight)
    assert layer.packed is not None
    assert error(layer(x), x.double() @ weight.double().T) < 1e-6


def test_without_the_fast_products_all_is_float32(path, monkeypatch):
    monkeypatch.setattr(fast_linear, "SMALL", 1)
    fast_linear.has_fbgemm.cache_clear()
    monkeypatch.setattr(torch.ops.quantized, "linear_dynamic_fp16", None, raising=False)
    try:
        assert not fast_linear.has_fbgemm(), "it is missing here"
        loaded = deploy.load(path)
    finally:
        monkeypatch.undo()
        fast_linear.has_fbgemm.cache_clear()
    tokens = torch.arange(30).view(1, 30)
    with torch.no_grad():
        assert error(loaded(tokens), rounded(made(TINY))(tokens)) < 2e-6


def test_loading_moves_no_random_numbers_and_no_engine(fast, path):
    torch.manual_seed(3)
    before, engine = torch.get_rng_state(), torch.backends.quantized.engine
    deploy.load(path)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.backends.quantized.engine == engine


def answers(path: Path) -> str:
    """All that a loaded model says, to the bit."""
    model = deploy.load(path)
    tokens = torch.arange(48).view(1, 48)
    with torch.no_grad():
        whole = model(tokens)
    logits, state = model.prefill(tokens)
    for i in range(5):
        logits, state = model.step(tokens[:, i], state)
    ids = list(ps.generate(model, [1, 2], 20, seed=5))
    return files.tensors_sha256({"forward": whole, "step": logits, "state": state[0]}) + str(ids)


ALONE = """
import sys
TORCH = {"torch", "torchgen", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2", "fsspec", "filelock"}
HERE = TORCH | {"safetensors", "einops", "pspin_lite"}
class Only:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        found = self.finder.find_spec(name, path, target)
        ours = name.partition(".")[0] in HERE | sys.stdlib_module_names
        return found if ours else None
sys.meta_path = [Only(finder) for finder in sys.meta_path]
import torch
import pspin_lite as ps
from pspin_lite import _files as files, deploy
from pathlib import Path
exec(sys.argv[2])
print(answers(sys.argv[1]))
"""


@pytest.mark.fault(20)
@pytest.mark.parametrize("name", ["tiny", "large enough for the fast products"])
def test_same_logits_to_the_bit_in_a_process_with_torch_and_safetensors_alone(name, tmp_path):
    cfg = TINY if name == "tiny" else TINY.replace(width=512, inner=512, layers=1)
    deploy.export(made(cfg), tmp_path / "x", IDENTITY)
    command = [sys.executable, "-c", ALONE, str(tmp_path / "x"), inspect.getsource(answers)]
    threads = os.environ | dict(OMP_NUM_THREADS=str(torch.get_num_threads()))
    result = subprocess.run(command, capture_output=True, text=True, env=threads, timeout=120, check=False)
    assert result.stdout.strip() == answers(tmp_path / "x"), result.stderr


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.fault(20)
def test_exporting_over_the_file_that_was_loaded(path):
    def content() -> str:
        return files.tensors_sha256(*files.read_tensors(path))

    before, loaded = content(), deploy.load(path)
    assert loaded.tokenizer_identity == IDENTITY
    deploy.export(loaded, path)
    assert content() == before, "the same, tokenizer and all"
    deploy.export(made(TINY, seed=1), path)
    assert content() != before
    deploy.export(loaded, path)
    assert content() == before, "its values did not follow the file"


@pytest.mark.fault(20)
def test_mode_and_link_are_respected(path):
    path.chmod(0o640)
    (path.parent / "link").symlink_to(path)
    deploy.export(made(TINY, seed=1), path.parent / "link")
    assert (path.parent / "link").is_symlink()
    assert path.stat().st_mode & 0o7777 == 0o640
    assert sorted(p.name for p in path.parent.iterdir()) == ["link", "model.safetensors"]
    deploy.load(path.parent / "link")


def test_what_cannot_be_exported(tmp_path):
    model = made(TINY)
    for value, words in ((1e6, ["norm.weight", "1e+06", "65504"]), (math.nan, ["norm.weight", "nan"])):
        with torch.no_grad():
            model.norm.weight[3] = value
        with pytest.raises(ValueError) as raised:
            deploy.export(model, tmp_path / "x")
        assert all(word in message(raised) for word in words), message(raised)
    with pytest.raises(ValueError, match="model: got Linear, expected a p-Spin network"):
        deploy.export(torch.nn.Linear(2, 2), tmp_path / "x")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileError, match="could not be written"):
        deploy.export(made(TINY), tmp_path / "missing" / "x")


def renamed(prefix: str):
    return lambda tensors, about: [tensors.update({prefix + name: tensors.pop(name)}) for name in list(tensors)]


def configured(**changes):
    return lambda tensors, about: about.update(config=json.dumps(json.loads(about["config"]) | changes))


W_Q, PACKED = "blocks.0.state_space.w_q.weight", "blocks.1.attractor.w_int.packed"


@pytest.mark.fault(13, 14)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, a: t.pop(W_Q), [f"missing {W_Q}"]),
        (lambda t, a: t.update(extra=torch.ones(1)), ["unexpected extra"]),
        (lambda t, a: t.update({PACKED: t[PACKED].T.clone()}), [PACKED, "[3, 20]", "[20, 3]", "transposed"]),
        (lambda t, a: t.update({W_Q: t[W_Q].float()}), [W_Q, "float32", "float16"]),
        (lambda t, a: t.update({W_Q: t[W_Q].bfloat16()}), [W_Q, "bfloat16"]),
        (configured(vocab=300), ["embedding.weight", "[256, 24]", "[300, 24]"]),
        (configured(layers=3), ["missing blocks.2.norm_ssm.weight", "missing blocks.2.attractor.w_int.scale"]),
        (configured(layers=1), ["unexpected blocks.1.attractor.gamma_param"]),
        (renamed("_orig_mod."), ["torch.compile", f"missing {W_Q}", f"unexpected _orig_mod.{W_Q}"]),
        (renamed("module."), ["parallel", f"unexpected module.{W_Q}"]),
        (configured(layers=10**12), ["layers", "1000000000000"]),
        (configured(vocab=10**15), ["embedding.weight", "[256, 24]"]),
        (configured(vocab=10**18), ["configuration"]),
        (configured(vocab=10**40), ["configuration"]),
        (configured(width=0), ["configuration", "width"]),
        (configured(kind="other"), ["configuration", "kind", "other"]),
        (configured(colour=3), ["configuration", "colour"]),
        (lambda t, a: a.update(config="[" * 10**5), ["configuration"]),
        (lambda t, a: a.update(config="[]"), ["configuration"]),
        (lambda t, a: a.pop("config"), ["configuration", "config"]),
        (lambda t, a: a.update(tokenizer="{"), ["configuration"]),
        (lambda t, a: a.pop("format"), ["not a deployed model", "export"]),
        (lambda t, a: a.update(format="pspin_lite checkpoint 1"), ["not a deployed model", "checkpoint"]),
        (lambda t, a: a.update(format=f"{deploy.KIND} 2"), ["format 2", "reads 1", "newer", "update"]),
        (lambda t, a: a.update(format=f"{deploy.KIND} 0"), ["format 0", "reads 1", "older", "export the model again"]),
        (lambda t, a: t[PACKED].fill_(255), ["packed", "11"]),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_the_reason(path, change, words):
    tensors, about = files.read_tensors(path)
    change(tensors, about)
    files.write_tensors(path, tensors, about)  # with a hash that fits
    with pytest.raises(FileError) as raised:
        deploy.load(path)
    assert str(path) in str(raised.value)
    assert all(word in str(raised.value) for word in words), str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_damaged_file_is_refused(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        deploy.load(path)


@pytest.mark.fault(12)
def test_mutated_headers_that_hash_correctly_are_our_error(path):
    """Changes behind the hash's back: the words about the tensors are anything at all."""
    tensors, about = files.read_tensors(path)
    rng = random.Random(2)
    for _ in range(150):
        words = dict(about)
        key = rng.choice(list(words))
        text = list(words[key])
        for _ in range(rng.randint(1, 3)):
            text[rng.randrange(len(text))] = rng.choice('0123456789"{}[]:,.e-tnull é')
        words[key] = "".join(text)
        files.write_tensors(path, tensors, words)
        with contextlib.suppress(FileError):  # any other exception fails the test
            deploy.load(path)


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.eq("tab-footprint", "tab-baseline")
@pytest.mark.parametrize("name", ["byte-lite", "subword-lite", "transformer-lite", "byte-mended", "byte-paper"])
def test_size_on_disk_is_the_footprint(name, tmp_path):
    cfg = ps.preset(name)
    table = ps.footprint(cfg)
    model = ps.build(cfg)
    size = deploy.export(model, tmp_path / "x")
    assert size == (tmp_path / "x").stat().st_size
    header = 8 + int.from_bytes((tmp_path / "x").open("rb").read(8), "little")
    scales = sum(4 for m in model.modules() if isinstance(m, ps.ternary.TernaryLinear))
    assert scales == (0 if "transformer" in name else 4 if "mended" in name else 8) * cfg.layers
    assert size - header == table.bytes + scales
    assert header < 10_000
    if name == "byte-paper":
        assert table.params == 60_963_008
        assert round(size / 2**20, 2) in (41.37, 41.38), "the paper's table says 41.37 MB"


def test_what_is_in_the_file(path):
    tensors, about = files.read_tensors(path)
    assert {str(x.dtype) for name, x in tensors.items() if name.startswith("embedding")} == {"torch.float32"}
    assert {str(x.dtype) for name, x in tensors.items() if name.endswith(".packed")} == {"torch.uint8"}
    others = {x.dtype for name, x in tensors.items() if not name.endswith((".packed", ".scale", "embedding.weight"))}
    assert others == {torch.float16}
    assert about["format"] == "pspin_lite deployed model 1"
    assert config.from_dict(json.loads(about["config"])) == TINY
    assert json.loads(about["tokenizer"]) == IDENTITY
    assert sum(name.endswith(".packed") for name in tensors) == 4
