"""The letters of the series: one meaning each, in equations, in code and in the paper.

docs/letters.md is written from this file by `make docs`. tests/tools/test_letters.py reads every equation of the
notebooks and fails where one uses a letter that is not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "letters.md"


@dataclass(frozen=True)
class Letter:
    tex: str
    code: str  # its name in code
    shape: str  # of one sequence, or a range
    meaning: str
    paper: str  # what the paper calls it, in TeX; "" if it has no letter there


GROUPS: dict[str, tuple[Letter, ...]] = {
    "Sizes": (
        Letter("B", "B", "", "sequences in a batch", "B"),
        Letter("T", "T", "", "tokens in a sequence", "T"),
        Letter("L", "layers", "", "blocks, one on top of the other", "L"),
        Letter("D", "D, width", "", "width of the stream", "D"),
        Letter("H", "H, heads", "", "heads of the state space", "H"),
        Letter("d", "d", r"$D/H$", "width of a head", "d_h"),
        Letter("C", "C, chunk", "", "tokens in a chunk", "C"),
        Letter("I", "I, spins", "", "spins of an attractor", r"D_{\mathrm{int}}"),
        Letter("K", "K, steps", "", "steps of the attractor", "K"),
        Letter("N", "vocab", "", "tokens in the vocabulary", r"\lvert V\rvert"),
    ),
    "Indices": (
        Letter("t", "t", r"$1..T$", "a token", "t"),
        Letter("i", "i", r"$1..T$", "a token that reads; in a matrix, a row", "c"),
        Letter("j", "j", r"$1..T$", "a token that was written; in a matrix, a column", "j"),
        Letter("n", "step", r"$0..K$", "a step of the attractor", "k"),
        Letter(r"\ell", "layer", r"$1..L$", "a block", "l"),
    ),
    "State space": (
        Letter(
            "x",
            "x",
            r"$T \times D$",
            r"the stream; $\bar x$ is $x$ scaled to root mean square 1",
            r"X, \tilde X, \bar X",
        ),
        Letter("q", "q", r"$T \times d$", "queries", "Q"),
        Letter("k", "k", r"$T \times d$", "keys", "K"),
        Letter("v", "v", r"$T \times d$", "values", "V"),
        Letter("g", "g", r"$T$", r"log decay, at most 0: $e^{g}$ of the state is kept", "G"),
        Letter("S", "S", r"$C$", "running sum of the log decays of a chunk", r"G_{\mathrm{cs}}"),
        Letter("M", "M", r"$C \times C$", "decay mask: what is left of token $j$ at token $i$", "M"),
        Letter("h", "h, state", r"$d \times d$", "the state of a head: its memory", "h"),
        Letter("o", "o", r"$T \times d$", "outputs", "O"),
    ),
    "Weights": (
        Letter("w", "w", "", "one weight, or a vector of weights", "w"),
        Letter("W", "W, weight", "", r"a matrix; $\widehat W$ is the same, rounded to three values", "W, W^Q"),
        Letter("E", "embedding", r"$N \times D$", "embedding, and output head", r"W_{\mathrm{emb}}"),
        Letter("s", "s, scale", "", "scale of a ternary matrix", "s"),
        Letter(
            "A", "A", r"$2I \times I$", r"damped couplings $\widehat W_{\mathrm{int}}\operatorname{diag}\gamma$", ""
        ),
    ),
    "Attractor": (
        Letter("z", "z", r"$T \times 2I$", "drive from outside", "Z"),
        Letter("f", "field", r"$T \times 2I$", r"field: drive and feedback, $f = [u \mid a]$", "H"),
        Letter("u", "u", r"$T \times I$", r"the half of the field that sets a spin's value, $\tanh u$", "U"),
        Letter("a", "a, gate", r"$T \times I$", r"the half that opens its gate, $\sigma(a)$", "G"),
        Letter("y", "y", r"$T \times I$", r"spins; $y_K$ is the layer's answer, $y^*$ a fixed point", "Y"),
        Letter(r"\gamma", "gamma", r"$I$", "damping of the feedback, at most one half", r"\gamma"),
        Letter("r", "residual", "", "residual: the relative change in a step", ""),
        Letter("J", "J", r"$I \times I$", r"Jacobian of a step, $J_{ij} = \partial y_i / \partial y_j$", "J"),
        Letter(r"\rho", "rho, radius", "", r"spectral radius of $J$", ""),
        Letter(r"\delta", "delta", "", "a small difference", ""),
    ),
    "Gradients and training": (
        Letter(r"\mathcal L", "loss", "", "loss, nats per token", r"\mathcal L"),
        Letter(r"\varphi", "phi_u, phi_a", r"$T \times I$", "slopes of a spin in its two fields", r"\phi"),
        Letter(r"\lambda", "adjoint", r"$T \times I$", "gradient at the spins, feedback included", "V"),
        Letter(r"\eta", "lr", "", "learning rate", r"\eta"),
        Letter(r"\beta", "betas", "", "memory of AdamW's running means", r"\beta"),
        Letter("p", "p", "", "a probability; in “p-spin”, how many spins act together", "p"),
        Letter("m", "m", "", "a mean, or a plain count", ""),
    ),
}
FIRST = ("K", "I", "n", "x", "q", "k", "v", "g", "h", "z", "u", "a", "y", r"\gamma", "J")  # what notebook 00 lists
FUNCTIONS = ("e", r"\sigma", r"\pi", "O")  # the exponential, the sigmoid, 3.14, the order of a cost

_SILENT = re.compile(  # words, not letters
    r"\\(?:tag|text|mathrm|operatorname|textbf|begin|end|boxed|texttt)\*?\{[^{}]*\}|\{(?:aligned|cases|array)\}"
)
_LETTER = re.compile(r"\\mathcal\{? ?([A-Z])\}?|\\([a-zA-Z]+)|([A-Za-z])")
_GREEK = re.compile(
    r"alpha|beta|gamma|delta|epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega|ell"
    r"|varepsilon|varphi|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega"
)


def known() -> set[str]:
    return {letter.tex for group in GROUPS.values() for letter in group} | set(FUNCTIONS)


def letters(tex: str) -> set[str]:
    """The letters of a formula: Latin ones, Greek ones, script ones; names of functions and words left out."""
    result = set()
    for script, command, latin in _LETTER.findall(_SILENT.sub(" ", tex)):
        if script:
            result.add(rf"\mathcal {script}")
        elif latin:
            result.add(latin)
        elif _GREEK.fullmatch(command):
            result.add(f"\\{command}")
    return result


def formulas(markdown: str) -> list[str]:
    """What stands between dollars, code left out."""
    text = re.sub(r"```.*?```|`[^`]*`", " ", markdown, flags=re.DOTALL)
    blocks = re.findall(r"\$\$(.+?)\$\$", text, flags=re.DOTALL)
    rest = re.sub(r"\$\$.+?\$\$", " ", text, flags=re.DOTALL)
    return blocks + re.findall(r"\$([^$\n]+(?:\n[^$\n]+)?)\$", rest)


def tags(markdown: str) -> list[str]:
    """Names of equations that are typeset in a text."""
    return [name for formula in formulas(markdown) for name in re.findall(r"\\tag\{([^{}]+)\}", formula)]


def table(group: str) -> str:
    rows = ["| letter | in code | shape | meaning | in the paper |", "|---|---|---|---|---|"]
    for one in GROUPS[group]:
        cells = (f"${one.tex}$", f"`{one.code}`", one.shape, one.meaning, f"${one.paper}$" if one.paper else "")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def first() -> str:
    """The table at the end of notebook 00."""
    found = {one.tex: one for group in GROUPS.values() for one in group}
    rows = ["| letter | in code | meaning |", "|---|---|---|"]
    return "\n".join(rows + [f"| ${tex}$ | `{found[tex].code}` | {found[tex].meaning} |" for tex in FIRST])


def page() -> str:
    parts = [
        "# The letters",
        "Every letter has one meaning throughout. A vector is a row, so a layer computes $x W^\\top$. The paper uses "
        "some letters twice; the last column has its choice. `make docs` writes this page from "
        "`pspin_lite/tools/letters.py`.",
    ]
    for group in GROUPS:
        parts += [f"## {group}", table(group)]
    parts.append(r"Functions: $e^x$, the sigmoid $\sigma$, $\tanh$; $\odot$ multiplies entry by entry.")
    return "\n\n".join(parts) + "\n"
