"""Every equation of the paper, by identifier. The line that implements one says "Eq. <identifier>" in a comment or
docstring, the test that checks it carries `@pytest.mark.eq("<identifier>")`; tests/tools/test_equations.py fails when
either is missing.

equation_map.py finds both, and writes docs/equations.md from all three.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equation:
    id: str
    number: int | None  # among the paper's displayed equations, in order; None: in text, an algorithm or a table
    where: str  # in the paper
    formula: str  # in the letters of letters.py
    departure: str = ""  # where our code differs, and why

    @property
    def typeset(self) -> bool:
        """A formula, and not a statement in words or a table."""
        return self.formula.startswith("$")


@dataclass(frozen=True)
class Silence:
    """What the paper does not say, what we do, why, and where that is in our code."""

    on: str
    we: str
    because: str
    where: str


GATED, SPIN, IMPLICIT = "2.1.1 gated state spaces", "2.1.2 gated attractors", "2.1.3 exact implicit gradients"
COST, TABLES = "2.3 complexity", "appendix A.3"

EQUATIONS = (
    Equation(
        "rmsnorm",
        1,
        GATED,
        r"$\bar x = \frac{x}{\sqrt{\operatorname{mean}(x^2) + 10^{-6}}} \odot w_{\mathrm{norm}}$",
    ),
    Equation(
        "ssm-qkv",
        None,
        GATED,
        r"$q = \tfrac{1}{\sqrt d}\,\bar x W_q^\top,\quad k = \bar x W_k^\top,\quad v = \bar x W_v^\top$",
    ),
    Equation("ssm-gate", 2, GATED, r"$g = -\operatorname{mean}\,\log\bigl(1 + e^{\bar x W_g^\top}\bigr)$"),
    Equation(
        id="ssm-mask",
        number=3,
        where=GATED,
        formula=r"$M_{ij} = e^{S_i - S_j}\ \text{if } i \ge j,\ \text{else } 0$",
        departure="The decays of each segment from $j+1$ to $i$ are added up by themselves instead of subtracting two "
        "cumulative sums: a digit more in float32, and a log decay of −∞ is an exact reset instead of nan.",
    ),
    Equation("ssm-intra", 4, GATED, r"$o_{\mathrm{within}} = (q k^\top \odot M)\,v$"),
    Equation("ssm-cross", 5, GATED, r"$o_{\mathrm{before}} = (q h) \odot e^{S}$"),
    Equation(
        id="ssm-state",
        number=6,
        where=GATED,
        formula=r"$h \leftarrow e^{S_C} h + (k \odot e^{S_C - S})^\top v$",
        departure="$e^{S_C - S}$ is the last row of $M$, so nothing is subtracted here either. $T$ need not be "
        "a multiple of $C$.",
    ),
    Equation("ssm-out", None, GATED, r"$x \leftarrow x + o\,W_o^\top$"),
    Equation("ternary-scale", 7, SPIN, r"$s = \max(\operatorname{mean}\lvert w\rvert,\ 10^{-5})$"),
    Equation(
        id="ternary-round",
        number=8,
        where=SPIN,
        formula=r"$\widehat W = s \cdot \operatorname{clamp}(\operatorname{round}(W / s),\,-1,\,1)$",
        departure="The straight-through estimator is an autograd function whose value is exactly ternary; the common "
        "w + (q − w).detach() is ternary only up to rounding. Halves round to even (0.5 to 0), as "
        "torch.round does.",
    ),
    Equation("spin-drive", None, SPIN, r"$z = \bar x\,\widehat W_{\mathrm{ext}}^\top$"),
    Equation("spin-gamma", None, SPIN, r"$\gamma = \tfrac12 \tanh\gamma_{\mathrm{param}}$"),
    Equation("spin-output", 9, SPIN, r"$y_n = \tanh(u_n) \odot \sigma(a_n)$"),
    Equation(
        id="spin-field",
        number=10,
        where=SPIN,
        formula=r"$f_n = z + (\gamma \odot y_{n-1})\,\widehat W_{\mathrm{int}}^\top$",
        departure="With tol a token stops before K steps once all it would still change is expected to be below tol. "
        "Without it, K steps as in the paper.",
    ),
    Equation("spin-split", 11, SPIN, r"$[\,u_n \mid a_n\,] = f_n$"),
    Equation("spin-out", None, SPIN, r"$x \leftarrow x + y_K W_{\mathrm{down}}^\top$"),
    Equation(
        "spin-slopes",
        None,
        IMPLICIT,
        r"$\varphi_u = (1 - \tanh^2 u)\,\sigma(a),\quad \varphi_a = \tanh(u)\,\sigma(a)\,(1 - \sigma(a))$",
    ),
    Equation(
        id="neumann",
        number=12,
        where=IMPLICIT,
        formula=r"$\lambda_n = \frac{\partial\mathcal L}{\partial y} + \gamma \odot "
        r"\bigl([\lambda_{n-1}\varphi_u \mid \lambda_{n-1}\varphi_a]\,\widehat W_{\mathrm{int}}\bigr)$",
        departure="The paper does not say where the series starts: we take "
        "$\\lambda_0 = \\partial\\mathcal L/\\partial y$. It calls the result exact; it is exact only at a fixed point "
        "and for $K \\to \\infty$, otherwise wrong by terms of the order $\\rho^{K+1}$ ($\\rho$: spectral radius).",
    ),
    Equation(
        id="spin-grad",
        number=None,
        where=IMPLICIT,
        formula=r"$\frac{\partial\mathcal L}{\partial f} = [\lambda_K\varphi_u \mid \lambda_K\varphi_a]$",
        departure="The paper stops here. The rest follows: the gradient of $z$ is that of $f$; that of $A$ is the "
        "gradient of $f$, transposed, times $y_K$; from $A$ come those of $W_{\\mathrm{int}}$ and $\\gamma$. $y_K$ "
        "stands where the $K$-step map would have $y_{K-1}$.",
    ),
    Equation("head", None, "algorithms 1, 2", r"$\text{logits} = \bar x\,E^\top$"),
    Equation(
        id="loss",
        number=None,
        where="algorithms 1, 2",
        formula=r"$\mathcal L = -\operatorname{mean}\,\log\operatorname{softmax}(\text{logits})_{\text{next token}}$",
        departure="Computed in pieces of the batch, so that the $B\\,T\\,N$ logits of section 2.3 never exist at once.",
    ),
    Equation("alg-subword", None, "algorithm 1", "the whole network, $N = 49152$"),
    Equation("alg-byte", None, "algorithm 2", "the whole network, $N = 256$"),
    Equation("cost-ssm", 13, COST, r"$O(B\,T\,D\,(D + C + d))$"),
    Equation("cost-pspin", 14, COST, r"$O(B\,T\,I\,(D + K I))$"),
    Equation(
        id="act-pspin",
        number=15,
        where=COST,
        formula=r"$O(B\,T\,I)$",
        departure="Ours keeps $3I$ numbers per token: both slopes, and $y$, which the output projection keeps anyway.",
    ),
    Equation(
        id="cost-params",
        number=16,
        where=COST,
        formula=r"$5 \cdot 16\,D^2 + 2\,(2 D I + 2 I^2)\ \text{bits per layer}$",
        departure="Kept as it stands, but it leaves out $W_{\\mathrm{down}}$ ($D I$ numbers of 16 bits), which the "
        "paper's table counts.",
    ),
    Equation(
        id="tab-baseline",
        number=None,
        where=TABLES,
        formula="60,569,600 parameters, of which 25,165,824 embedding",
        departure="The paper does not give the baseline's shape. One ordinary modern shape has exactly these counts "
        "(see transformer-paper).",
    ),
    Equation(
        id="tab-footprint",
        number=None,
        where=TABLES,
        formula="41.37 MB (byte) and 124.40 MB (subword), by component",
        departure="Reproduced to the last digit. MB are 2²⁰ bytes; W_down, norms and γ stand under “state-space "
        "attention”.",
    ),
)

SILENT = (
    Silence(
        on="Initialisation of matrices",
        we="normal, standard deviation gain / √fan-in, with separate gains for dense and ternary matrices",
        because="keeps activations of order one at every width; the gains are configuration, so that comparisons can "
        "tune them alike",
        where="config.py, `gain`, `ternary_gain`; language_model.py, `init_weights`",
    ),
    Silence(
        on="Initialisation of the embedding",
        we="normal, standard deviation 0.02",
        because="it is the output head too, and the first loss should be about $\\log N$",
        where="language_model.py, `init_weights`",
    ),
    Silence(
        on="Start of γ_param",
        we="0.1, that is γ = 0.05",
        because="at 0 the couplings W_int have no gradient at all; small values start well inside contraction",
        where="config.py, `gamma_start`",
    ),
    Silence(
        on="Bias of the gate",
        we="none: a fresh head keeps about one half from token to token",
        because="the paper's parameter counts leave no room for one",
        where="model.py, `StateSpace`",
    ),
    Silence(
        on="Betas of AdamW",
        we="(0.9, 0.999)",
        because="PyTorch's default, the likeliest reading of “AdamW”",
        where="config.py, `betas`",
    ),
    Silence(
        on="Which weights decay",
        we="matrices, the embedding among them; not norms and γ_param",
        because="decay on γ_param would pull the attractor towards K = 0, and a verdict on the attractor would be one "
        "on the optimizer",
        where="config.py, `decay_vectors`",
    ),
    Silence(
        on="Schedule of the baseline",
        we="100 steps of warm-up and 500 of cosine in its 1,000",
        because="the p-Spin schedule (500 + 1,000) does not fit into 1,000 steps",
        where="config.py, `transformer-paper`",
    ),
    Silence(
        on="State at a document boundary",
        we="carried over, unless the caller sets the log decay to −∞ there",
        because="the paper packs documents and says nothing; the functions support an exact reset, the model offers no "
        "argument for it yet",
        where="state_space.py, `decay_mask`",
    ),
)
