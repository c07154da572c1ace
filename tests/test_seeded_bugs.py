"""Would the tests notice? Each bug below is written into a copy of the package; the tests named with it must then fail.

A bug whose text is no longer in the source fails loudly, so that this list cannot rot.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import assert_noticed, plant, run_tests

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Bug:
    name: str
    file: str
    right: str
    wrong: str
    tests: str  # the file of tests that must notice


SSM, SPIN, MODEL = "test_state_space.py", "test_attractor.py", "test_model.py"
DATA, TOKENS, TEXTS = "test_sequences.py", "test_tokenizers.py", "test_corpora.py"
COSTS, DEPLOY, GENERATE, FILES = "test_costs.py", "test_deploy.py", "test_generation.py", "test_files.py"
TRAIN = "test_training.py::test_against_a_loop_written_out"
STOPPED, NOT_FINITE = "test_faults.py::test_stopped_and_taken_up", "test_faults.py::test_not_finite"
FLIPPED, KILLED = "test_faults.py::test_flipped_bits", "test_faults.py::test_killed[optimizer-5]"
STABLE = "test_stability.py::test_"
REPLAY = "test_sequences.py::test_replay_alternates_new_and_old"
CHOSEN = "test_experiments.py::test_continual_arms_take_over_what_was_tuned"
VERDICT = "test_ledger.py::test_verdicts_follow_the_numbers"
BIG_CLIP = "clip_grads_with_norm_(self.model.parameters(), 1e9"
BUGS = [
    Bug(
        "decay dropped from the carry",
        "state_space",
        "addcmul(writes[:, i], h, carry[:, i])",
        "add(writes[:, i], h)",
        SSM,
    ),
    Bug("mask off by one", "state_space", "triu(1)  # [.., j, i]", "triu(0)  # [.., j, i]", SSM),
    Bug("future not masked", "state_space", ".exp_().triu().transpose", ".exp_().transpose", SSM),
    Bug("state read transposed", "state_space", '"bhk,bhkv->bhv"', '"bhk,bhvk->bhv"', SSM),
    Bug("no decay on reads from the state", "state_space", "h_in).mul_(from_start)", "h_in)", SSM),
    Bug(
        "state's gradient not decayed",
        "state_space",
        "addcmul(reads[:, i], dh, carry[:, i])",
        "add(reads[:, i], dh)",
        SSM,
    ),
    Bug("gradient of the final state lost", "state_space", "dstate.reshape(", "(0 * dstate).reshape(", SSM),
    Bug("writes counted one token early", "state_space", "wrote.cumsum(-1)[:, :-1]", "wrote.cumsum(-1)[:, 1:]", SSM),
    Bug(
        "carried state missing in dg", "state_space", "dG += from_start[:, -1] *", "dG += 0 * from_start[:, -1] *", SSM
    ),
    Bug("mask missing in dg", "state_space", "dG = inside + read", "dG = 0 * inside + read", SSM),
    Bug("reads missing in dg", "state_space", "inside + read @ from_i", "inside + 0 * read @ from_i", SSM),
    Bug("positive decay let through", "state_space", "not bool((g <= 0).all())", "False", SSM),
    Bug(
        "gamma on the wrong side",
        "attractor",
        "y * gamma, w_int.T",
        "y, (torch.cat([gamma, gamma])[:, None] * w_int).T",
        SPIN,
    ),
    Bug("one Neumann term forgotten", "attractor", "dy, ctx.steps, ctx.tol", "dy, ctx.steps - 1, ctx.tol", SPIN),
    Bug("series without its start", "attractor", ".mul_(gamma).add_(start)", ".mul_(gamma)", SPIN),
    Bug(
        "slope of the gate wrong",
        "attractor",
        "addcmul(y, s, y, value=-1, out=s)",
        "addcmul(y, s, s, value=-1, out=s)",
        SPIN,
    ),
    Bug("gamma missing in the weight's gradient", "attractor", "dA.mul_(gamma)", "dA", SPIN),
    Bug(
        "all tokens wait for the slowest",
        "attractor",
        "still = running.nonzero()",
        "still = running.any().expand_as(running).nonzero()",
        SPIN,
    ),
    Bug("stops a step too late", "attractor", "tol * (before - change)", "tol * (before - change) * change", SPIN),
    Bug("gradient of gamma wrong", "attractor", "(a * w).sum(0) for", "a.sum(0) for", SPIN),
    Bug(
        "gradient not straight through",
        "ternary",
        "        return grad\n",
        "        return 0.5 * grad\n",
        "test_ternary.py",
    ),
    Bug("scale missing", "ternary", ".clamp_(-1, 1).mul_(scale)", ".clamp_(-1, 1)", "test_ternary.py"),
    Bug("no clamp", "ternary", ".round_().clamp_(-1, 1).mul_", ".round_().mul_", "test_ternary.py"),
    Bug("bits packed in the other order", "ternary", "[0, 2, 4, 6]", "[6, 4, 2, 0]", "test_ternary.py"),
    Bug("stale weights kept", "ternary", "self._kept[1] != version", "False", "test_ternary.py"),
    Bug("kernels given tensors of a CPU", "backends", "not x.is_cuda:", "False:", SSM),
    Bug("queries not scaled", "model", "q = q * q.shape[-1] ** -0.5", "q = q", MODEL),
    Bug("gate summed, not averaged", "model", '"b t h d -> b t h", "mean"', '"b t h d -> b t h", "sum"', MODEL),
    Bug("gamma bound doubled", "model", "0.5 * torch.tanh(", "torch.tanh(", MODEL),
    Bug("a transposed weight", "model", "self.w_o(o)", "o @ self.w_o.weight", MODEL),
    Bug("first norm used twice", "model", "self.norm_spin(x)", "self.norm_ssm(x)", MODEL),
    Bug("another epsilon", "language_model", "EPS = 1e-6", "EPS = 1e-5", MODEL),
    Bug("loss summed, not averaged", "loss", "return total / n, dx", "return total, dx", MODEL),
    Bug(
        "target missing in the loss's gradient",
        "loss",
        "p.new_full(target.shape, -1.0)",
        "p.new_zeros(target.shape)",
        MODEL,
    ),
    Bug(
        "only the last piece in the head's gradient",
        "loss",
        "dweight.addmm_(p.T, piece)",
        "dweight = p.T @ piece",
        MODEL,
    ),
    Bug("a prompt's second piece sees the future", "transformer", ".tril(past)", ".tril(past + 1)", MODEL),
    Bug("a piece of the loss lost", "loss", "range(0, n, rows)", "range(0, n - 1, rows)", MODEL),
    Bug(
        "positions start anew while decoding",
        "transformer",
        "rotate(self.norm_k(k), past,",
        "rotate(self.norm_k(k), 0,",
        MODEL,
    ),
    Bug("warm-up one step behind", "config", "(step + 1) / warm", "step / warm", "test_config.py"),
    Bug("a flop forgotten", "costs", "2 * K + (K > 0) if", "2 * K if", "test_costs.py"),
    Bug("cuts off by one", "sequences", "[n - first])) * long % N", "[n - first])) * self.length % N", DATA),
    Bug("remainder dropped at an epoch's end", "sequences", "nothing = True", "nothing, rest = True, rest[:0]", DATA),
    Bug("every epoch in the same order", "sequences", "SeedSequence([seed, epoch])", "SeedSequence([seed, 0])", DATA),
    Bug("rank's share wrong", "sequences", "self.offset = rank * self.share", "self.offset = rank", DATA),
    Bug("workers do the same steps", "sequences", "self.start + mine, of", "self.start, of", DATA),
    Bug(
        "end token missing",
        "sequences",
        "np.append(self.tokenizer.encode(text), self.tokenizer.end)",
        "self.tokenizer.encode(text)",
        DATA,
    ),
    Bug("characters counted as bytes", "sequences", 'len(row["text"].encode())', 'len(row["text"])', DATA),
    Bug(
        "last window lost",
        "sequences",
        "count = -(-self.tokens // self.length)",
        "count = self.tokens // self.length",
        DATA,
    ),
    Bug("training's generator drawn from", "sequences", "generator=torch.Generator(),", "generator=None,", DATA),
    Bug(
        "a stream's files divided among workers",
        "corpora",
        "for batch in stream.iter(batch_size=16):",
        'for batch in ({"text": [row["text"]]} for row in stream):',
        DATA,
    ),
    Bug(
        "damage to the cache unnoticed",
        "cache",
        'facts.pop("sha256") != files.file_sha256(stored)',
        'not facts.pop("sha256")',
        DATA,
    ),
    Bug("validation streamed for training", "corpora", "not in self._kept:", "not in ():", TEXTS),
    Bug(
        "text that spells the end ends it",
        "tokenizers",
        "encode_special_tokens = True",
        "encode_special_tokens = False",
        TOKENS,
    ),
    Bug(
        "one of AdamW's moments forgotten",
        "costs",
        "StepMemory(weights, 2 * weights,",
        "StepMemory(weights, weights,",
        COSTS,
    ),
    Bug("two pieces of logits alive at once", "loss", "p = None  # the piece", "pass  # the piece", COSTS),
    Bug(
        "scale missing in the export",
        "deploy",
        "ternary.pack(codes), scale",
        "ternary.pack(codes), scale + 1",
        DEPLOY,
    ),
    Bug("gamma not bounded once deployed", "deploy", "0.5 * torch.tanh(gamma_param)", "gamma_param", DEPLOY),
    Bug("a newer format taken for ours", "deploy", "int(found[1])) != FORMAT", "int(found[1])) < FORMAT", DEPLOY),
    Bug("tokens share their digits' unit", "fast_linear", ".abs().amax(-1, keepdim=True)", ".abs().amax()", DEPLOY),
    Bug("second digit lost", "fast_linear", "alpha=1 / 254", "alpha=0", DEPLOY),
    Bug("state not carried", "generation", "device=device), state)", "device=device), None)", GENERATE),
    Bug("top-p off by one", "generation", "p.cumsum(-1) - p  #", "p.cumsum(-1) - 2 * p  #", GENERATE),
    Bug("drawn from torch's global numbers", "generation", "torch.rand((), generator=rng,", "torch.rand((),", GENERATE),
    Bug("half a character lost", "generation", 'decode(b"", final=True)', 'decode(b"")', GENERATE),
    Bug("hash not compared", "files", "if found != wanted:", "if False:", FILES),
    Bug(
        "values looked up in the file",
        "files",
        "x.clone() for name, x in load(content).items()",
        "x for name, x in __import__('safetensors.torch').torch.load_file(path).items()",
        FILES,
    ),
    Bug("link replaced by a file", "files", "Path(os.path.realpath(path))", "Path(path)", FILES),
    Bug(
        "temporary file left behind",
        "files",
        "as error:\n        temporary.unlink(missing_ok=True)\n",
        "as error:\n",
        FILES,
    ),
    Bug("moments lost on the way", "checkpoint", "dict(state=kept)", "dict(state={})", STOPPED),
    Bug("metrics written twice", "runs", 'if record["step"] <= step]', "]", KILLED),
    Bug("begins again at the first sequence", "trainer", "batches(self.step, cfg", "batches(0, cfg", STOPPED),
    Bug("rate a step behind", "trainer", "learning_rate(self.step)", "learning_rate(max(0, self.step - 1))", TRAIN),
    Bug("no clipping", "trainer", "clip_grads_with_norm_(self.model.parameters(), self.cfg.clip", BIG_CLIP, TRAIN),
    Bug("a step with nan", "trainer", "isfinite(loss) and math.isfinite(norm)", "isfinite(loss)", NOT_FINITE),
    Bug("manifest of nothing", "checkpoint", "if files.file_sha256(path) != wanted", "if False and wanted", FLIPPED),
    Bug(
        "noise counted as signal",
        "stability",
        "signal = of_mean - noise / n",
        "signal = of_mean",
        f"{STABLE}noise_scale_of_known_gradients",
    ),
    Bug(
        "jitter of the text itself",
        "stability",
        "np.var(a - b) + np.var(a - c) - np.var(b - c)",
        "2 * np.var(a)",
        f"{STABLE}jitter_takes_trend_and_text_away",
    ),
    Bug("replay from the future", "sequences", "bits % (now + 1)", "bits % self._parts()", REPLAY),
    Bug("the worst try chosen", "experiments", "return min(tries, key=", "return max(tries, key=", CHOSEN),
    Bug(
        "full precision rounded after all",
        "ablation",
        "Attractor(cfg) if cfg.ternary else DenseAttractor(cfg)",
        "Attractor(cfg)",
        "test_ablation.py",
    ),
    Bug("verdict turned round", "ledger/trained", "HOLDS if high <= margin", "HOLDS if high > margin", VERDICT),
    Bug("margin against the mean", "ledger/trained", "gap.mean + gap.half_width", "gap.mean", VERDICT),
    Bug(
        "a step of 64 sequences taken for one",
        "ledger/printed",
        ' / preset(f"{name}-paper").batch',
        "",
        "test_ledger.py::test_a_step_is_timed_by_the_paper_and_by_us",
    ),
    Bug(
        "what is replayed counted as new",
        "continual",
        "2 if replays else 1",
        "1",
        "test_continual.py::test_online_counts_what_is_new",
    ),
    Bug(
        "sequences of a mixed order taken for steps",
        "continual",
        "np.argsort(sequences.permutation(len(mixed), seed, 0))",
        "sequences.permutation(len(mixed), seed, 0)",
        "test_continual.py::test_what_the_order_gains_is_taken_on_the_same_sequences",
    ),
    Bug(
        "a run cut off is scored on one window",
        "paper_run",
        "max(1, FINAL_TOKENS // run.cfg.context)",
        "1",
        "test_paper_run.py::test_it_stops_when_the_time_of_its_steps_is_over",
    ),
    Bug(
        "context that is not cut off",
        "evaluation",
        "tokens[:, p - c + 1 : p + 1]",
        "tokens[:, : p + 1]",
        "test_training.py::test_loss_by_context_is_of_the_same_targets",
    ),
]


def run_on_copy(folder: Path, *tests: str) -> subprocess.CompletedProcess:
    return run_tests(folder, folder, "-rfE", *tests, HYPOTHESIS_STORAGE_DIRECTORY=str(folder / ".hypothesis"))


def copy_to(folder: Path, bug: Bug | None = None) -> Path:
    plant(ROOT / "pspin_lite", folder / "pspin_lite", bug and (f"{bug.file}.py", bug.right, bug.wrong))
    plant(ROOT / "tests", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_bug_is_noticed(bug, tmp_path):
    """A test fails, and the same test passes on a clean copy: it is the bug that it noticed, and not the copying."""
    found = run_on_copy(copy_to(tmp_path / "bug", bug), f"tests/{bug.tests}")
    assert_noticed(found)
    failed = re.search(r"^(?:FAILED|ERROR) (tests/[^\n]*?)(?: - [^\n]*)?$", found.stdout, re.MULTILINE)[1]
    again = run_on_copy(copy_to(tmp_path / "clean"), failed)
    assert again.returncode == 0, f"{failed} fails on a clean copy too:\n{again.stdout[-2000:]}"


def test_the_copy_is_what_is_tested(tmp_path):
    copy = copy_to(tmp_path)
    (copy / "tests" / "test_where.py").write_text(
        "import pspin_lite, pspin_lite.model\n"
        f"def test_where(): assert pspin_lite.model.__file__.startswith({str(copy)!r})\n"
    )
    assert run_on_copy(copy, "tests/test_where.py").returncode == 0
