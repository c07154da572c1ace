"""Every equation of the paper, by identifier. The line that implements one says "Eq. <identifier>" in a comment or
docstring, the test that checks it carries `@pytest.mark.eq("<identifier>")`; tests/test_equations.py fails when either
is missing.

docs/equations.md is written from this file and from what is found in the code: `make docs`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "equations.md"


@dataclass(frozen=True)
class Equation:
    id: str
    number: int | None  # among the paper's displayed equations, in order; None: in text, an algorithm or a table
    where: str  # in the paper
    formula: str
    departure: str = ""  # where our code differs, and why


GATED, SPIN, IMPLICIT = "2.1.1 gated state spaces", "2.1.2 gated attractors", "2.1.3 exact implicit gradients"
COST, TABLES = "2.3 complexity", "appendix A.3"

EQUATIONS = (
    Equation("rmsnorm", 1, GATED, "X̃ = X / √(mean(X²) + 1e-6) ⊙ W_norm"),
    Equation("ssm-qkv", None, GATED, "Q, K, V = X̃W_qᵀ, X̃W_kᵀ, X̃W_vᵀ;  Q ← Q · d_h^-½"),
    Equation("ssm-gate", 2, GATED, "G = mean over d_h of −log(1 + exp(X̃W_gᵀ))"),
    Equation(
        *("ssm-mask", 3, GATED, "M[c,j] = exp(Gcs[c] − Gcs[j]) if c ≥ j, else 0"),
        "The decays of each segment j+1..c are added up by themselves instead of subtracting two cumulative sums: a "
        "digit more in "
        "float32, and a log decay of −∞ is an exact reset instead of nan.",
    ),
    Equation("ssm-intra", 4, GATED, "O_intra = (QKᵀ ⊙ M) V"),
    Equation("ssm-cross", 5, GATED, "O_cross = (Q h) ⊙ exp(Gcs)"),
    Equation(
        *("ssm-state", 6, GATED, "h⁽ⁱ⁾ = h⁽ⁱ⁻¹⁾ exp(Gcs[C]) + (K ⊙ exp(Gcs[C] − Gcs))ᵀ V"),
        "exp(Gcs[C] − Gcs) is the last row of M, so nothing is subtracted here either. T need not be a multiple of C.",
    ),
    Equation("ssm-out", None, GATED, "X_mid = X + O W_oᵀ"),
    Equation("ternary-scale", 7, SPIN, "s = max(mean |w|, 1e-5)"),
    Equation(
        *("ternary-round", 8, SPIN, "W^Q = STE(clamp(round(W / s), −1, 1) · s)"),
        "The straight-through estimator is an autograd function whose value is exactly ternary; the common "
        "w + (q − w).detach() is ternary only up to rounding. Halves round to even (0.5 to 0), as torch.round does.",
    ),
    Equation("spin-drive", None, SPIN, "Z = X̄ (W_ext^Q)ᵀ"),
    Equation("spin-gamma", None, SPIN, "γ = 0.5 tanh(γ_param)"),
    Equation("spin-output", 9, SPIN, "Y_{k−1} = tanh(U_{k−1}) ⊙ σ(G_{k−1})"),
    Equation(
        *("spin-field", 10, SPIN, "H_k = Z + (γ ⊙ Y_{k−1}) (W_int^Q)ᵀ"),
        "With tol a token stops before K steps once all it would still change is expected to be below tol. Without "
        "it, K steps "
        "as in the paper.",
    ),
    Equation("spin-split", 11, SPIN, "U_k, G_k = the two halves of H_k"),
    Equation("spin-out", None, SPIN, "X⁽ˡ⁾ = X_mid + Y* W_downᵀ"),
    Equation("spin-slopes", None, IMPLICIT, "φ_u = (1 − tanh²U_K) σ(G_K);  φ_g = tanh(U_K) σ(G_K) (1 − σ(G_K))"),
    Equation(
        *("neumann", 12, IMPLICIT, "V_k = ∂L/∂Y* + γ ⊙ ([V_{k−1}φ_u ‖ V_{k−1}φ_g] W_int^Q)"),
        "The paper does not say where the series starts: V_0 = ∂L/∂Y*. It calls the result exact; it is exact only at "
        "a fixed point "
        "and for K → ∞, otherwise wrong by terms of the order ρ^K (ρ: spectral radius).",
    ),
    Equation(
        *("spin-grad", None, IMPLICIT, "∂L/∂H = [V_K φ_u ‖ V_K φ_g]"),
        "The paper stops here. From it: ∂L/∂Z = ∂L/∂H, and with A = W_int diag(γ), ∂L/∂A = (∂L/∂H)ᵀ Y*, ∂L/∂W_int = "
        "∂L/∂A diag(γ), "
        "∂L/∂γ = column sums of ∂L/∂A ⊙ W_int. Y* is Y_K where the K-step map would have Y_{K−1}.",
    ),
    Equation("head", None, "algorithms 1, 2", "Ŷ = RMSNorm(X⁽ᴸ⁾) W_embᵀ"),
    Equation(
        *("loss", None, "algorithms 1, 2", "L = CrossEntropy(Ŷ, Y_targ)"),
        "Computed in pieces of the batch, so that the B·T·|V| logits of section 2.3 never exist at once.",
    ),
    Equation("alg-subword", None, "algorithm 1", "the whole network, |V| = 49152"),
    Equation("alg-byte", None, "algorithm 2", "the whole network, |V| = 256"),
    Equation("cost-ssm", 13, COST, "O(B T D (D + C + d_h))"),
    Equation("cost-pspin", 14, COST, "O(B T D_int (D + K D_int))"),
    Equation(
        *("act-pspin", 15, COST, "O(B T D_int), whatever K"),
        "Ours keeps 3 D_int numbers a token: φ_u, φ_g, and Y, which W_down keeps anyway.",
    ),
    Equation(
        *("cost-params", 16, COST, "5·16 D² + 2 (2 D D_int + 2 D_int²) bits a layer"),
        "Kept as it stands, but it leaves out W_down (D·D_int at 16 bits), which the paper's table counts.",
    ),
    Equation(
        *("tab-baseline", None, TABLES, "60,569,600 parameters, of which 25,165,824 embedding"),
        "The paper does not give the baseline's shape. One ordinary modern shape has exactly these counts (see "
        "transformer-paper).",
    ),
    Equation(
        *("tab-footprint", None, TABLES, "41.37 MB (byte) and 124.40 MB (subword), by component"),
        "Reproduced to the last digit. MB are 2²⁰ bytes; W_down, norms and γ stand under “state-space attention”.",
    ),
)

SILENT = (  # what the paper does not say, what we do, why, where
    (
        "Initialisation of matrices",
        "normal, standard deviation gain / √fan-in, with separate gains for dense and ternary matrices",
        "keeps activations of order one at every width; the gains are configuration, so that comparisons can tune "
        "them alike",
        "config.py, `gain`, `ternary_gain`; language_model.py, `init_weights`",
    ),
    (
        "Initialisation of the embedding",
        "normal, standard deviation 0.02",
        "it is the output head too, and the first loss should be about ln |V|",
        "language_model.py, `init_weights`",
    ),
    (
        "Start of γ_param",
        "0.1, that is γ = 0.05",
        "at 0 the couplings W_int have no gradient at all; small values start well inside contraction",
        "config.py, `gamma_start`",
    ),
    (
        "Bias of the gate",
        "none: a fresh head keeps about one half from token to token",
        "the paper's parameter counts leave no room for one",
        "model.py, `StateSpace`",
    ),
    ("Betas of AdamW", "(0.9, 0.999)", "PyTorch's default, the likeliest reading of “AdamW”", "config.py, `betas`"),
    (
        "Which weights decay",
        "matrices, the embedding among them; not norms and γ_param",
        "decay on γ_param would pull the attractor towards K = 0, and a verdict on the attractor would be one on the "
        "optimizer",
        "config.py, `decay_vectors`",
    ),
    (
        "Schedule of the baseline",
        "100 steps of warm-up and 500 of cosine in its 1,000",
        "the p-Spin schedule (500 + 1,000) does not fit into 1,000 steps",
        "config.py, `transformer-paper`",
    ),
    (
        "State at a document boundary",
        "carried over, unless the caller sets the log decay to −∞ there",
        "the paper packs documents and says nothing; the functions support an exact reset, the model offers no "
        "argument for it yet",
        "state_space.py, `decay_mask`",
    ),
)


def in_code(root: Path = ROOT) -> dict[str, list[str]]:
    """identifier -> places "file, function" whose text names it."""
    places: dict[str, list[str]] = {}
    for path in sorted([*(root / "pspin_lite").glob("*.py"), *(root / "kernels").glob("*.py")]):
        if path.name == "equations.py":
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"Eq\. ([a-z]+(?:-[a-z]+)*)", line):
                place = f"{path.relative_to(root).as_posix()}, {_around(tree, number)}"
                if place not in places.setdefault(name, []):
                    places[name].append(place)
    return places


def in_tests(root: Path = ROOT) -> dict[str, list[str]]:
    """identifier -> tests "file, function" that carry its mark."""
    places: dict[str, list[str]] = {}
    for path in sorted((root / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in getattr(node, "decorator_list", []):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.eq":
                    for argument in mark.args:
                        places.setdefault(ast.literal_eval(argument), []).append(f"{path.name}, {node.name}")
    return places


def _around(tree: ast.Module, line: int) -> str:
    """The dotted name of the innermost function or class around a line."""
    names, node = [], tree
    while True:
        inner = [
            child
            for child in ast.walk(node)
            if child is not node
            and isinstance(child, ast.FunctionDef | ast.ClassDef)
            and child.lineno <= line <= (child.end_lineno or 0)
        ]
        if not inner:
            return ".".join(names) or "module"
        node = max(inner, key=lambda child: (child.end_lineno or 0) - child.lineno)
        names.append(node.name)


def page() -> str:
    code, tests = in_code(), in_tests()
    lines = [
        "# The paper's equations, the code and the tests",
        "",
        "Written by `make docs` from `pspin_lite/equations.py`; do not edit. Numbers are the paper's displayed "
        "equations,",
        "in order;",
        "“text” stands in running text, an algorithm or a table. In the code, search for `Eq. <identifier>`.",
        "",
        "| # | identifier | paper | formula | code | tests |",
        "|---|---|---|---|---|---|",
    ]
    for eq in EQUATIONS:
        found = [", ".join(_link(place) for place in places.get(eq.id, [])) for places in (code, tests)]
        lines.append(_row(str(eq.number or "text"), f"`{eq.id}`", eq.where, eq.formula, *found))
    lines += ["", "## Where we depart from the paper", "", "| identifier | how and why |", "|---|---|"]
    lines += [_row(f"`{eq.id}`", eq.departure) for eq in EQUATIONS if eq.departure]
    lines += ["", "## Where the paper is silent", "", "| on | we | because | where |", "|---|---|---|---|"]
    lines += [_row(*silence) for silence in SILENT]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _link(place: str) -> str:
    path, name = place.split(", ")
    return f"`{path.removeprefix('pspin_lite/')}` `{name}`"


def main(write: bool) -> int:
    if write:
        PAGE.write_text(page(), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    else:
        print(page())
    return 0
