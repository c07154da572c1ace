"""Would the tests notice? Each bug below is written into a copy of the package; the tests named with it must then fail.

A bug whose text is no longer in the source fails loudly, so that this list cannot rot.
"""

from __future__ import annotations

import compileall
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
from helpers import assert_noticed, copy_code, plant, run_tests

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Bug:
    name: str
    file: str
    right: str
    wrong: str
    tests: str  # the file of tests that must notice, or the one test if the file is slow to come to it


SSM, SPIN, MODEL = "test_state_space.py", "test_attractor.py", "test_model.py"
MINIMAL = "test_minimal.py::test_the_package_computes_what_the_specification_says"
DATA, TOKENS, TEXTS = "data/test_sequences.py", "data/test_tokenizers.py", "data/test_corpora.py"
COSTS, DEPLOY, GENERATE, FILES = "test_costs.py", "test_deploy.py", "test_generation.py", "test_files.py"
TRAIN = "training/test_training.py::test_against_a_loop_written_out"
STOPPED, NOT_FINITE = "training/test_faults.py::test_stopped_and_taken_up", "training/test_faults.py::test_not_finite"
FLIPPED, KILLED = "training/test_faults.py::test_flipped_bits", "training/test_faults.py::test_killed[optimizer-5]"
STABLE = "study/test_stability.py::test_"
REPLAY = "data/test_sequences.py::test_replay_alternates_new_and_old"
CHOSEN = "study/test_jobs.py::test_continual_arms_take_over_what_was_tuned"
VERDICT = "study/claims/test_ledger.py::test_verdicts_follow_the_numbers"
EMULATOR = "tools/emulator"
BIG_CLIP = "clip_grads_with_norm_(model.parameters(), 1e9"
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
    Bug(
        "positive decay let through",
        "state_space",
        "not bool((g <= 0).all())",
        "False",
        f"{SSM}::test_bad_arguments_are_named",
    ),
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
    Bug("scale missing", "ternary", "return codes.mul_(scale)", "return codes", "test_ternary.py"),
    Bug("no clamp", "ternary", ".round_().clamp_(-1, 1), scale", ".round_(), scale", "test_ternary.py"),
    Bug("bits packed in the other order", "ternary", "[0, 2, 4, 6]", "[6, 4, 2, 0]", "test_ternary.py"),
    Bug("stale weights kept", "ternary", "self._kept[1] != version", "False", "test_ternary.py"),
    Bug(
        "kernels given tensors of a CPU",
        "_backends",
        "not x.is_cuda:",
        "False:",
        f"{SSM}::test_kernels_for_a_gpu_refuse_tensors_on_the_cpu",
    ),
    Bug("queries not scaled", "model", "q = q * q.shape[-1] ** -0.5", "q = q", MINIMAL),
    Bug("gate summed, not averaged", "model", '"b t h d -> b t h", "mean"', '"b t h d -> b t h", "sum"', MINIMAL),
    Bug("gamma bound doubled", "model", "0.5 * torch.tanh(", "torch.tanh(", MINIMAL),
    Bug("a transposed weight", "model", "self.w_o(o)", "o @ self.w_o.weight", MINIMAL),
    Bug("first norm used twice", "model", "self.norm_spin(x)", "self.norm_ssm(x)", MINIMAL),
    Bug("another epsilon", "language_model", "EPS = 1e-6", "EPS = 1e-5", MINIMAL),
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
    Bug(
        "a prompt's second piece sees the future",
        "transformer",
        ".tril(past)",
        ".tril(past + 1)",
        f"{MODEL}::test_decoding_agrees_with_forward[tiny_transformer]",
    ),
    Bug("a piece of the loss lost", "loss", "range(0, n, rows)", "range(0, n - 1, rows)", MODEL),
    Bug(
        "positions start anew while decoding",
        "transformer",
        "rotate(self.norm_k(k), past,",
        "rotate(self.norm_k(k), 0,",
        f"{MODEL}::test_decoding_agrees_with_forward[tiny_transformer]",
    ),
    Bug("warm-up one step behind", "training/recipe", "(step + 1) / warm", "step / warm", "training/test_recipe.py"),
    Bug("a flop forgotten", "costs", "2 * K + (K > 0) if", "2 * K if", "test_costs.py"),
    Bug("cuts off by one", "data/sequences", "[n - first])) * long % N", "[n - first])) * self.length % N", DATA),
    Bug(
        "remainder dropped at an epoch's end",
        "data/sequences",
        "nothing = True",
        "nothing, rest = True, rest[:0]",
        f"{DATA}::test_going_on_with_a_stream_is_exact_in_the_second_epoch_too",
    ),
    Bug(
        "every epoch in the same order",
        "data/sequences",
        "SeedSequence([seed, epoch])",
        "SeedSequence([seed, 0])",
        DATA,
    ),
    Bug(
        "rank's share wrong",
        "data/sequences",
        "self.offset = rank * self.share",
        "self.offset = rank",
        f"{DATA}::test_workers_give_the_same_sequences[packed-1]",
    ),
    Bug(
        "workers do the same steps",
        "data/sequences",
        "self.start + mine, of",
        "self.start, of",
        f"{DATA}::test_workers_give_the_same_sequences[packed-4]",
    ),
    Bug(
        "end token missing",
        "data/sequences",
        "np.append(self.tokenizer.encode(text), self.tokenizer.end)",
        "self.tokenizer.encode(text)",
        DATA,
    ),
    Bug("characters counted as bytes", "data/sequences", 'len(row["text"].encode())', 'len(row["text"])', DATA),
    Bug(
        "last window lost",
        "data/sequences",
        "count = -(-len(self._tokens) // self.length)",
        "count = len(self._tokens) // self.length",
        DATA,
    ),
    Bug(
        "training's generator drawn from",
        "data/sequences",
        "generator=torch.Generator(),",
        "generator=None,",
        f"{DATA}::test_the_generator_of_training_is_left_alone",
    ),
    Bug(
        "a stream's files divided among workers",
        "data/corpora",
        "for batch in stream.iter(batch_size=16):",
        'for batch in ({"text": [row["text"]]} for row in stream):',
        f"{DATA}::test_workers_give_the_same_sequences[streamed-1]",
    ),
    Bug(
        "damage to the cache unnoticed",
        "data/cache",
        'facts.pop("sha256") != files.file_sha256(stored)',
        'not facts.pop("sha256")',
        f"{DATA}::test_a_damaged_cache_is_made_anew",
    ),
    Bug(
        "validation streamed for training",
        "data/corpora",
        "not in self._kept:",
        "not in ():",
        f"{TEXTS}::test_fineweb_is_the_papers_call",
    ),
    Bug(
        "text that spells the end ends it",
        "data/tokenizers",
        "encode_special_tokens = True",
        "encode_special_tokens = False",
        TOKENS,
    ),
    Bug(
        "one of AdamW's moments forgotten",
        "costs",
        "StepMemory(weights, 2 * weights,",
        "StepMemory(weights, weights,",
        f"{COSTS}::test_peak_memory_of_a_training_step_is_predicted[byte-lite-{{}}-1-512]",
    ),
    Bug(
        "two pieces of logits alive at once",
        "loss",
        "p = None  # the piece",
        "pass  # the piece",
        f"{COSTS}::test_peak_memory_of_a_training_step_is_predicted[subword-lite-{{}}-8-256]",
    ),
    Bug(
        "scale missing in the export",
        "deploy",
        "ternary.pack(codes), scale",
        "ternary.pack(codes), scale + 1",
        DEPLOY,
    ),
    Bug("gamma not bounded once deployed", "deploy", "trained.gamma()", "gamma_param", DEPLOY),
    Bug(
        "a newer format taken for ours",
        "deploy",
        "int(match[1])) != FORMAT",
        "int(match[1])) < FORMAT",
        f"{DEPLOY}::test_a_file_that_does_not_fit_is_refused_with_the_reason",
    ),
    Bug("tokens share their digits' unit", "_fast_linear", ".abs().amax(-1, keepdim=True)", ".abs().amax()", DEPLOY),
    Bug("second digit lost", "_fast_linear", "alpha=1 / 254", "alpha=0", DEPLOY),
    Bug("state not carried", "generation", "device=device), state)", "device=device), None)", GENERATE),
    Bug(
        "top-p off by one",
        "generation",
        "p.cumsum(-1) - p  #",
        "p.cumsum(-1) - 2 * p  #",
        f"{GENERATE}::test_what_is_drawn_and_how_often",
    ),
    Bug("drawn from torch's global numbers", "generation", "torch.rand((), generator=rng,", "torch.rand((),", GENERATE),
    Bug(
        "half a character lost",
        "generation",
        'decode(b"", final=True)',
        'decode(b"")',
        f"{GENERATE}::test_what_is_not_utf8_is_shown",
    ),
    Bug("hash not compared", "_files", "if actual != wanted:", "if False:", FILES),
    Bug(
        "values looked up in the file",
        "_files",
        "x.clone() for name, x in load(content).items()",
        "x for name, x in __import__('safetensors.torch').torch.load_file(path).items()",
        f"{FILES}::test_writing_over_the_file_that_is_being_read",
    ),
    Bug(
        "link replaced by a file",
        "_files",
        "Path(os.path.realpath(path))",
        "Path(path)",
        f"{FILES}::test_links_are_followed",
    ),
    Bug(
        "temporary file left behind",
        "_files",
        "as error:\n        temporary.unlink(missing_ok=True)\n",
        "as error:\n",
        f"{FILES}::test_disk_full_by_a_real_limit",
    ),
    Bug("moments lost on the way", "training/checkpoint", "dict(state=kept)", "dict(state={})", STOPPED),
    Bug("metrics written twice", "training/runs", 'if record["step"] <= step]', "]", KILLED),
    Bug("begins again at the first sequence", "training/loop", "batches(self.step, cfg", "batches(0, cfg", STOPPED),
    Bug(
        "rate a step behind",
        "training/loop",
        "rate(self.cfg, self.step)\n        self.optimizer.zero_grad",
        "rate(self.cfg, max(0, self.step - 1))\n        self.optimizer.zero_grad",
        TRAIN,
    ),
    Bug("no clipping", "training/recipe", "clip_grads_with_norm_(model.parameters(), model.cfg.clip", BIG_CLIP, TRAIN),
    Bug("a step with nan", "training/loop", "isfinite(loss) and math.isfinite(norm)", "isfinite(loss)", NOT_FINITE),
    Bug(
        "manifest of nothing",
        "training/checkpoint",
        "if files.file_sha256(path) != wanted",
        "if False and wanted",
        FLIPPED,
    ),
    Bug(
        "noise counted as signal",
        "training/gradient_noise",
        "signal = of_mean - noise / n",
        "signal = of_mean",
        f"{STABLE}noise_scale_of_known_gradients",
    ),
    Bug(
        "jitter of the text itself",
        "study/stability",
        "np.var(a - b) + np.var(a - c) - np.var(b - c)",
        "2 * np.var(a)",
        f"{STABLE}jitter_takes_trend_and_text_away",
    ),
    Bug("replay from the future", "data/sequences", "bits % (now + 1)", "bits % self._parts()", REPLAY),
    Bug("the worst try chosen", "study/jobs", "return min(tries, key=", "return max(tries, key=", CHOSEN),
    Bug(
        "full precision rounded after all",
        "variants",
        "Attractor(cfg) if cfg.ternary else DenseAttractor(cfg)",
        "Attractor(cfg)",
        "test_variants.py",
    ),
    Bug(
        "size of the Jacobian at the wrong point",
        "_mended",
        "torch.autograd.grad(attractor.step(y, z,",
        "torch.autograd.grad(attractor.step(0 * y, z,",
        "test_variants.py",
    ),
    Bug(
        "gate after the output projection",
        "_mended",
        "self.w_o(o * F.silu(self.w_y(x)))",
        "self.w_o(o)",
        "test_variants.py",
    ),
    Bug(
        "second moment not corrected",
        "training/part_noise",
        'state["exp_avg_sq"] / grown',
        'state["exp_avg_sq"]',
        "training/test_part_noise.py",
    ),
    Bug(
        "every part moved at once",
        "training/part_noise",
        "start | {name: after[name] for name in names}",
        "after",
        "training/test_part_noise.py",
    ),
    Bug(
        "late from the start", "training/recipe", "if 2 * step >= cfg.steps", "if step >= 0", "training/test_recipe.py"
    ),
    Bug(
        "one split is enough to matter",
        "study/questions/criteria",
        'if all(gap <= -CLEAR for gap in gaps) or all(gap >= CLEAR for gap in gaps):\n        return "matters"',
        'if any(abs(gap) >= CLEAR for gap in gaps):\n        return "matters"',
        "study/questions/test_criteria.py::test_what_single_runs_can_tell",
    ),
    Bug(
        "as good on one split",
        "study/questions/criteria",
        "if all(gap < CLOSE for gap in gaps):",
        "if any(gap < CLOSE for gap in gaps):",
        "study/questions/test_criteria.py::test_what_single_runs_can_tell",
    ),
    Bug(
        "calmer with one seed",
        "study/questions/criteria",
        "if all(one <= other - SHARE if share",
        "if any(one <= other - SHARE if share",
        "study/questions/test_criteria.py::test_a_calmer_gradient_is_calmer_with_every_seed",
    ),
    Bug(
        "a shrinking gap taken for a growing one",
        "study/questions/criteria",
        'if all(gap <= -CLEAR for gap in gaps):\n        return "shrinks"',
        'if all(gap >= CLEAR for gap in gaps):\n        return "shrinks"',
        "study/questions/test_criteria.py::test_what_single_runs_can_tell",
    ),
    Bug(
        "a confounder turned round",
        "study/questions/measures",
        "_mean(every[1], split) - _mean(every[0], split)",
        "_mean(every[0], split) - _mean(every[1], split)",
        "study/questions/test_answers.py::test_what_a_change_does_without_an_interval",
    ),
    Bug(
        "the worst gain chosen",
        "study/questions/measures",
        "best[name] = min(runs",
        "best[name] = max(runs",
        "study/questions/test_answers.py::test_the_best_gain_counts",
    ),
    Bug(
        "the loudest probe counts",
        "study/questions/measures",
        "seed: statistics.median(",
        "seed: max(",
        "study/questions/test_answers.py::test_noise_of_the_mlp_is_compared_seed_by_seed",
    ),
    Bug(
        "nats of context taken for bits",
        "study/questions/measures",
        "(nats[SHORT] - nats[WIDE]) / math.log(2)",
        "nats[SHORT] - nats[WIDE]",
        "study/questions/test_answers.py::test_what_context_is_worth",
    ),
    Bug(
        "the worse of two rates",
        "study/questions/measures",
        "return min(every, key=lambda one",
        "return max(every, key=lambda one",
        "study/questions/test_answers.py::test_the_gap_at_two_sizes",
    ),
    Bug(
        "variance of one size for both",
        "study/questions/measures",
        "question.intervals, spreads[1])",
        "question.intervals)",
        "study/questions/test_answers.py::test_the_gap_at_two_sizes",
    ),
    Bug(
        "the gap after less text added",
        "study/questions/measures",
        "                    - (end(best[few, name], split)",
        "                    + (end(best[few, name], split)",
        "study/questions/test_answers.py::test_the_gap_with_more_text",
    ),
    Bug(
        "the wrong group's order",
        "study/continual",
        'records.seeds(group, f"{model}-{one}")',
        'records.seeds(GROUP, f"{model}-{one}")',
        "study/questions/test_answers.py::test_what_the_order_costs",
    ),
    Bug(
        "what a copy brings is no write",
        "tools/emulator/shared",
        "                if self.races:\n                    self._stamp(places, done)\n",
        "",
        f"{EMULATOR}/test_checks.py::test_races",
    ),
    Bug(
        "an access ends where it begins",
        "tools/emulator/memory",
        "(address + np.uint64(each) > ends",
        "(address + np.uint64(1) > ends",
        f"{EMULATOR}/test_checks.py::test_an_access_that_begins_inside_and_ends_outside",
    ),
    Bug(
        "bytes without their sign",
        "tools/emulator/tensor_cores",
        '"s8": np.int8',
        '"s8": np.uint8',
        f"{EMULATOR}/test_layouts.py::test_mma",
    ),
    Bug(
        "the second group of warps has the first one's A",
        "tools/emulator/warpgroups",
        "len(each) == 1 else block, group])",
        "len(each) == 1 else block, 0])",
        f"{EMULATOR}/test_warpgroups.py::test_wgmma",
    ),
    Bug(
        "a product of four warps counted four times",
        "tools/emulator/counters",
        '(4 if one.parts[0] == "wgmma" else 1)',
        "1",
        f"{EMULATOR}/test_counters.py",
    ),
    Bug("verdict turned round", "study/claims/comparisons", "gap.high <= margin", "gap.high > margin", VERDICT),
    Bug("margin against the mean", "study/intervals", "self.mean + self.half_width", "self.mean", VERDICT),
    Bug(
        "a step of 64 sequences taken for one",
        "study/claims/paper_numbers",
        '["seconds_a_step"] / preset(f"{name}-paper").batch',
        '["seconds_a_step"]',
        "study/claims/test_ledger.py::test_a_step_is_timed_by_the_paper_and_by_us",
    ),
    Bug(
        "what is replayed counted as new",
        "study/continual",
        "2 if replays else 1",
        "1",
        "study/test_continual.py::test_online_counts_what_is_new",
    ),
    Bug(
        "sequences of a mixed order taken for steps",
        "study/continual",
        "np.argsort(sequences.permutation(len(mixed), seed, 0))",
        "sequences.permutation(len(mixed), seed, 0)",
        "study/test_continual.py::test_what_the_order_gains_is_taken_on_the_same_sequences",
    ),
    Bug(
        "a run cut off is scored on one window",
        "study/paper_size",
        "max(1, FINAL_TOKENS // run.cfg.context)",
        "1",
        "study/test_paper_size.py::test_it_stops_when_the_time_of_its_steps_is_over",
    ),
    Bug(
        "context that is not cut off",
        "training/evaluation",
        "tokens[:, p - c + 1 : p + 1]",
        "tokens[:, : p + 1]",
        "training/test_training.py::test_loss_by_context_is_of_the_same_targets",
    ),
]


@pytest.fixture(scope="session")
def copy(tmp_path_factory) -> Path:
    """The package and its tests, copied once. A bug is planted in it, and taken out again."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("pspin_lite", "tests"):
        copy_code(ROOT / name, folder / name)
    for name in ("pyproject.toml", "notebooks"):
        (folder / name).symlink_to(ROOT / name)
    # Compiled once, for all processes to come; Python compares hashes, and compiles a file with a bug in it anew
    compileall.compile_dir(folder / "pspin_lite", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return folder


def run_on(copy: Path, *tests: str) -> subprocess.CompletedProcess:
    return run_tests(copy, copy, "-rfE", *tests, HYPOTHESIS_STORAGE_DIRECTORY=str(copy / ".hypothesis"))


@pytest.fixture(scope="module")
def failed(copy):
    """The tests that noticed bugs. All pass on the clean copy: they noticed the bugs, and not the copying."""
    tests = set()
    yield tests
    if tests:
        again = run_on(copy, *sorted(tests))
        assert again.returncode == 0, f"a test that notices a bug fails on a clean copy too:\n{again.stdout[-2000:]}"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_bug_is_noticed(bug, copy, failed):
    text = plant(copy / "pspin_lite", f"{bug.file}.py", bug.right, bug.wrong)
    try:
        result = run_on(copy, f"tests/{bug.tests}")
    finally:
        (copy / "pspin_lite" / f"{bug.file}.py").write_text(text, encoding="utf-8")
    assert_noticed(result)
    failed.add(re.search(r"^(?:FAILED|ERROR) (tests/[^\n]*?)(?: - [^\n]*)?$", result.stdout, re.MULTILINE)[1])


def test_the_copy_is_what_is_tested(copy):
    where = copy / "tests" / "test_where.py"
    where.write_text(
        "import subprocess, sys\n"
        "import pspin_lite.model\n"
        f"def test_here(): assert pspin_lite.model.__file__.startswith({str(copy)!r})\n"
        "def test_in_a_process():\n"
        "    command = [sys.executable, '-c', 'import pspin_lite.model as m; print(m.__file__)']\n"
        "    assert subprocess.check_output(command, text=True).strip() == pspin_lite.model.__file__\n"
    )
    result = run_on(copy, "tests/test_where.py")
    where.unlink()
    assert result.returncode == 0, result.stdout
