"""Tables of `make bench` on state space, attractor, loss and widgets. Others' implementations beside ours."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ... import attractor, state_space, ternary
from ...lessons import explore_attractor
from ...lessons.widgets import svg
from ...loss import linear_cross_entropy
from .. import measure
from .tables import Calls, both_ways, product, show


def state_spaces(quick: bool) -> None:
    """With one thread the times are of the processor, so that a busy machine changes the ratios little."""
    from fla.ops.simple_gla.naive import naive_chunk_simple_gla, naive_recurrent_simple_gla

    alone = torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    chunks = {f"{who}, chunks of {C}": C for who in ("ours", "fla naive_chunk_simple_gla") for C in (64, 128)}
    for name, T, d in (("byte", 2048, 88), ("subword", 1024, 68)):
        T, H = (128, 2) if quick else (T, 8)
        inputs = [torch.randn(1, T, H, d, requires_grad=True) for _ in range(3)]
        inputs.append((-F.softplus(torch.randn(1, T, H))).requires_grad_())
        fast: Calls = {
            "ours, chunks of 64": lambda q, k, v, g: state_space.chunked(q, k, v, g, 64)[0],
            "ours, chunks of 128": lambda q, k, v, g: state_space.chunked(q, k, v, g, 128)[0],
            "fla naive_chunk_simple_gla, chunks of 64": lambda q, k, v, g: naive_chunk_simple_gla(
                q, k, v, g, scale=1.0, chunk_size=64
            )[0],
            "fla naive_chunk_simple_gla, chunks of 128": lambda q, k, v, g: naive_chunk_simple_gla(
                q, k, v, g, scale=1.0, chunk_size=128
            )[0],
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
                forward |= measure.Race(2 if quick else rounds, clock=clock)(calls | {"matmul": matmul})
            calls = {}
            for key, f in group.items():
                upstream = torch.randn(1, H, T, d) if "dot_product" in key else torch.randn(1, T, H, d)
                uses = inputs[:3] if "dot_product" in key else inputs
                calls[key] = both_ways((lambda q, k, v, g=None, f=f: f(q, k, v, g)), uses, upstream)
            training |= measure.Race(2 if quick else rounds, clock=clock)(calls | {"matmul": matmul})
        rows = [["", "forward ms", "ratio", "+backward ms", "ratio", "rate"]]
        ours = "ours, chunks of 64"
        for key in fast | slow:
            chunk = chunks.get(key, 0)
            flops = 3 * T * H * (4 * chunk * d + 4 * d * d)
            rate = f"{flops / training[key] / (matmul_flops / training['matmul']):.0%}" if chunk else ""
            cells = [f"{forward[key] * 1e3:.1f}", f"{forward[key] / forward[ours]:.2f}"]
            rows.append([key, *cells, f"{training[key] * 1e3:.1f}", f"{training[key] / training[ours]:.2f}", rate])
        title = f"Gated state space at the {name} shape: B=1, T={T}, H={H}, d={d}; ratio to ours, more is slower"
        show(title + (", processor time" if alone else ""), rows)


def attractors(quick: bool) -> None:
    from torchdeq import get_deq

    n, D = (64, 32) if quick else (2048, 2048)
    z = torch.randn(n, 2 * D, requires_grad=True)
    w = ternary.ste(torch.randn(2 * D, D) * D**-0.5).requires_grad_()
    gamma = torch.full((D,), 0.23, requires_grad=True)
    inputs, upstream = [z, w, gamma], torch.randn(n, D)
    matmul, matmul_flops = product(256 if quick else 2048)

    def checkpointed(z, w, gamma, K):
        y = attractor.spin(z)
        for _ in range(K):
            y = checkpoint(attractor.step, y, z, w, gamma, use_reentrant=False)
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
        return solver(lambda y: attractor.step(y, z, w, gamma), attractor.spin(z).detach())[0][-1]

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


def widgets(quick: bool) -> None:
    """A move of a slider, from its value to SVG text, against the same picture by matplotlib alone."""
    drawn = {
        "random spins": lambda: explore_attractor.draw_random(K=5, gamma=0.5, scale=3.0)[0],
        "two spins": lambda: explore_attractor.draw_two_spins(kind="agree", K=5, gamma=0.5, w=4.0)[0],
    }
    rows = [["", "ms", "share of matplotlib's"]]
    for name, draw in drawn.items():
        calls = {"ours": lambda draw=draw: draw().svg(), "theirs": lambda draw=draw: svg(draw().still())}
        took = measure.Race(2 if quick else 9)(calls)
        rows.append([name, f"{took['ours'] * 1e3:.0f}", f"{took['ours'] / took['theirs']:.2f}"])
    show("Redraw of a widget at a move of its slider (the aim: under 100 ms)", rows)
