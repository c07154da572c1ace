"""Files: whole or not at all, noticed when damaged, unable to run code. The numbers are those of the list of faults."""

from __future__ import annotations

import errno
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
import torch

from pspin_lite import _files as files
from pspin_lite._files import FileError

ROOT = Path(__file__).resolve().parent.parent
TENSORS = {
    "a": torch.arange(6, dtype=torch.float32).view(2, 3),
    "half": torch.tensor([1.5, -0.0, float("nan"), float("inf")], dtype=torch.float16),
    "codes": torch.tensor([[0, 255], [7, 9]], dtype=torch.uint8),
    "scalar": torch.tensor(3.25, dtype=torch.float64),
    "none": torch.empty(0, 4, dtype=torch.int64),
    "yes": torch.tensor([True, False]),
    "bf": torch.tensor([[1e30]], dtype=torch.bfloat16),
}
ABOUT = {"config": '{"width": 3}', "note": 'é\n"quoted"'}


def same(result: dict, expected: dict) -> bool:
    return files.tensors_sha256(result) == files.tensors_sha256(expected)


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def written(tmp_path) -> Path:
    path = tmp_path / "x.safetensors"
    files.write_tensors(path, TENSORS, ABOUT)
    return path


def run(code: str, *arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)


# --- round trips ----------------------------------------------------------------------------------


def test_tensors_come_back_to_the_bit(written):
    tensors, about = files.read_tensors(written)
    assert same(tensors, TENSORS)
    assert about == ABOUT
    assert only(written.parent) == ["x.safetensors"]


def test_views_and_gradients_are_written_as_their_values(tmp_path):
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    files.write_tensors(tmp_path / "x", {"t": x.T, "part": x[:, 1]})
    tensors, about = files.read_tensors(tmp_path / "x")
    assert torch.equal(tensors["t"], x.detach().T)
    assert torch.equal(tensors["part"], x.detach()[:, 1])
    assert about == {}


def test_hash_is_of_names_types_shapes_and_numbers():
    x = torch.arange(4, dtype=torch.int32)
    others = [{"b": x}, {"a": x.float()}, {"a": x.view(2, 2)}, {"a": x + 1}, {"a": x, "b": x}, {}]
    hashes = [files.tensors_sha256(t) for t in [{"a": x}, *others]] + [files.tensors_sha256({"a": x}, {"k": "v"})]
    assert len(set(hashes)) == len(hashes)
    assert files.tensors_sha256({"a": x, "b": x + 1}) == files.tensors_sha256({"b": x + 1, "a": x}), "any order"


def test_json_comes_back_and_what_json_cannot_hold_is_not_written(tmp_path):
    value = {"a": [1, 2.5, None, "é"], "b": {"c": True}}
    files.write_json(tmp_path / "x.json", value)
    assert files.read_json(tmp_path / "x.json") == value
    for bad in ({"x": float("nan")}, {"x": object()}):
        with pytest.raises((ValueError, TypeError)):
            files.write_json(tmp_path / "x.json", bad)
    assert files.read_json(tmp_path / "x.json") == value
    assert only(tmp_path) == ["x.json"]


def test_sha256_of_a_file(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert files.file_sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


# --- 4, 5: cut and flipped ------------------------------------------------------------------------


@pytest.mark.fault(4)
@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, "half", "one short"])
def test_a_file_cut_short_is_named_with_its_size(written, cut):
    whole = written.read_bytes()
    size = {"half": len(whole) // 2, "one short": len(whole) - 1}.get(cut, cut)
    written.write_bytes(whole[:size])
    with pytest.raises(FileError) as raised:
        files.read_tensors(written)
    assert str(written) in str(raised.value)
    assert f"({size} bytes)" in str(raised.value)
    path = written.with_suffix(".json")
    path.write_bytes(b'{"step": 1, "seeds": [1, 2, 3]}'[:size][:-1])
    with pytest.raises(FileError, match=r"x\.json: not JSON \(\d+ bytes\)"):
        files.read_json(path)


def test_bytes_too_many_are_noticed(written):
    written.write_bytes(written.read_bytes() + b"\0")
    with pytest.raises(FileError, match="not a complete"):
        files.read_tensors(written)


@pytest.mark.fault(5)
def test_any_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "x.safetensors"
    files.write_tensors(path, {"w": torch.tensor([1.0, 2.0]), "v": torch.tensor([3], dtype=torch.int16)}, {"k": "v"})
    whole = path.read_bytes()
    for position in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(FileError):
            files.read_tensors(path)


# --- 6: no space ----------------------------------------------------------------------------------

LIMITED = """
import resource, sys, torch
from pspin_lite import _files as files
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for write in (lambda: files.write_tensors(sys.argv[1], {"w": torch.ones(4096)}),
              lambda: files.write_json(sys.argv[2], {"w": "x" * 5000})):
    try:
        write()
    except files.FileError as error:
        print(error)
"""


@pytest.mark.fault(6)
def test_disk_full_by_a_real_limit(written):
    note = written.parent / "x.json"
    files.write_json(note, {"kept": 1})
    result = run(LIMITED, written, note)
    lines = result.stdout.splitlines()
    assert len(lines) == 2, result.stderr
    for line, path in zip(lines, (written, note), strict=True):
        assert line.startswith(f"{path}: could not be written: no space left")
    assert same(files.read_tensors(written)[0], TENSORS), "the old file is intact"
    assert files.read_json(note) == {"kept": 1}
    assert only(written.parent) == ["x.json", "x.safetensors"]


@pytest.mark.fault(6)
@pytest.mark.parametrize("where", ["save_file", "os.chmod", "os.fsync", "os.replace"])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "no space left"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (files.SafetensorError("I/O error: No space left on device (os error 28)"), "no space left"),
    ],
    ids=["ENOSPC", "EDQUOT", "EIO", "safetensors"],
)
def test_an_injected_error_leaves_all_as_it_was(written, monkeypatch, where, error, words):
    def fails(*args, **kwargs):
        raise error

    monkeypatch.setattr(f"pspin_lite._files.{where}", fails)
    with pytest.raises(FileError, match=words) as raised:
        files.write_tensors(written, {"other": torch.ones(3)})
    monkeypatch.undo()
    assert str(written) in str(raised.value)
    assert same(files.read_tensors(written)[0], TENSORS)
    assert only(written.parent) == ["x.safetensors"]


def test_an_interrupt_leaves_all_as_it_was(written, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("pspin_lite._files.os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_tensors(written, {"other": torch.ones(3)})
    monkeypatch.undo()
    assert same(files.read_tensors(written)[0], TENSORS)
    assert only(written.parent) == ["x.safetensors"]


def test_flushed_before_renamed_and_the_folder_after(written, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(f"pspin_lite._files.os.{name}", lambda *a, n=name, real=real: (done.append(n), real(*a))[1])
    files.write_text(written.parent / "t", "x")
    assert done == ["fsync", "replace", "fsync"]


def test_written_where_folders_cannot_be_opened(tmp_path, monkeypatch):
    """As on Windows: no os.O_DIRECTORY, a folder cannot be opened, and only what is open for writing is synced."""
    opened, real = [], os.open

    def open_as_windows(path, flags, *mode):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied")
        opened.append(flags & os.O_ACCMODE)
        return real(path, flags, *mode)

    monkeypatch.delattr(os, "O_DIRECTORY")
    monkeypatch.setattr(os, "open", open_as_windows)
    files.write_json(tmp_path / "x.json", {"a": 1})
    assert files.read_json(tmp_path / "x.json") == {"a": 1}
    assert opened[-1] == os.O_RDWR


# --- 11: pickles ----------------------------------------------------------------------------------


class Bomb:
    def __init__(self, sentinel: Path):
        self.sentinel = sentinel

    def __reduce__(self):
        return os.mkdir, (str(self.sentinel),)


def bombs(folder: Path) -> dict[str, bytes]:
    bomb = Bomb(folder / "sentinel")
    result = {f"pickle {p}": pickle.dumps(bomb, protocol=p) for p in range(pickle.HIGHEST_PROTOCOL + 1)}
    torch.save({"w": torch.ones(2), "x": bomb}, folder / "zip")
    result["torch zip"] = (folder / "zip").read_bytes()
    torch.save(bomb, folder / "legacy", _use_new_zipfile_serialization=False)
    result["torch legacy"] = (folder / "legacy").read_bytes()
    with zipfile.ZipFile(folder / "plain", "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(bomb))
    result["zip"] = (folder / "plain").read_bytes()
    # Made to look like safetensors at its eighth byte
    result["disguised"] = b"\x80\x02" + b"\0" * 6 + b"{" + pickle.dumps(bomb) + b" " * 1000
    return result


@pytest.mark.fault(11)
@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".json", ""])
def test_a_malicious_pickle_is_refused_unopened(tmp_path, suffix, monkeypatch):
    def opened(*args, **kwargs):
        raise AssertionError("opened")

    contents = bombs(tmp_path)
    for module, name in (("pickle", "load"), ("pickle", "loads"), ("torch", "load")):
        monkeypatch.setattr(f"{module}.{name}", opened)
    for name, content in contents.items():
        path = tmp_path / f"weights{suffix}"
        path.write_bytes(content)
        with pytest.raises(FileError) as raised:
            files.read_tensors(path)
        if name != "disguised" and name not in ("pickle 0", "pickle 1"):  # those two start like any text
            assert "refused unopened" in str(raised.value)
        with pytest.raises(FileError):
            files.read_json(path)
    assert not (tmp_path / "sentinel").exists()


# --- 12: fuzzed -----------------------------------------------------------------------------------


def with_header(header: bytes | dict, data: bytes = b"", length: int | None = None) -> bytes:
    if isinstance(header, dict):  # a hash of the right form gets them further
        header = json.dumps({"__metadata__": {"sha256": "0" * 64}} | header).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)) -> dict:
    return {"w": dict(dtype=dtype, shape=list(shape), data_offsets=list(offsets))}


CRAFTED = {
    **{f"header length {n}": with_header(b"{}", length=n) for n in (0, 1, 3, 10**8, 10**8 + 1, 2**63, 2**64 - 1)},
    "deep": with_header(b"{" + b'"a":{' * 100_000 + b"}" * 100_001),
    "deep lists": with_header(b'{"w":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "not UTF-8": with_header(b'{"\xff\xfe":1}'),
    "a list": with_header(b"[1, 2]"),
    "null": with_header(b"{null}"),
    "no shape": with_header({"w": {"dtype": "F32"}}),
    "metadata a number": with_header({"__metadata__": 3}),
    "metadata of numbers": with_header({"__metadata__": {"a": 3}}),
    "huge shape": with_header(entry(shape=[2**40, 2**20]), b"1234"),
    "huge product": with_header(entry(shape=[2**62, 2**62, 2**62]), b"1234"),
    "overflow to 1": with_header(entry(shape=[2**32, 2**32, 2**32, 1]), b"1234"),
    "huge with nothing": with_header(entry(shape=[0, 2**62], offsets=(0, 0))),
    "huger with nothing": with_header(entry(shape=[2**63, 0, 2**63], offsets=(0, 0))),
    "a thousand dimensions": with_header(entry(shape=[1] * 1000), b"1234"),
    "negative shape": with_header(entry(shape=[-1, -1]), b"1234"),
    "fractional shape": with_header(entry(shape=[0.5, 2]), b"1234"),
    "offsets backwards": with_header(entry(offsets=(4, 0)), b"1234"),
    "offsets beyond": with_header(entry(shape=[2**38], offsets=(0, 2**40)), b"1234"),
    "offsets huge": with_header(entry(offsets=(2**64 - 4, 2**64 - 1)), b"1234"),
    "overlap": with_header(entry() | {"v": entry()["w"]}, b"1234"),
    "hole": with_header(entry(offsets=(4, 8)), b"12345678"),
    "twice": with_header(b"{" + b",".join([json.dumps(entry())[1:-1].encode()] * 2) + b"}", b"1234"),
    **{
        f"type {name}": with_header(entry(name, [4 // size], (0, 4)), b"1234")
        for name, size in [("F8_E4M3", 1), ("F8_E8M0", 1), ("U16", 2), ("U32", 4), ("F4", 1), ("XX", 1), ("", 1)]
    },
    "type F4": with_header(entry("F4", [8]), b"1234"),
    "type C64": with_header(entry("C64", [1], (0, 8)), b"12345678"),
}


@pytest.mark.fault(12)
@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_header_is_our_error_and_no_other(name, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(CRAFTED[name])
    with pytest.raises(FileError, match=r"x\.safetensors"):
        files.read_tensors(path)


def mutated(whole: bytes, rng: random.Random) -> bytes:
    """One to three changes: bits flipped, a piece cut out, doubled or exchanged, bytes inserted, numbers enlarged."""
    content = bytearray(whole)
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(content) + 1)
        stop = min(len(content), start + rng.choice([1, 2, 8, 50]))
        kind = rng.randrange(6)
        if kind == 0 and start < len(content):
            content[start] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del content[start:stop]
        elif kind == 2:
            content[start:start] = content[start:stop]
        elif kind == 3:
            content[start:start] = rng.choice([b"[" * 5000, b"9" * 30, b'{"a":', b"\xff" * 8, b"\0" * 100])
        elif kind == 4:
            content[start:stop] = rng.randbytes(stop - start)
        else:
            content[:8] = rng.choice([b"\xff" * 8, struct.pack("<Q", rng.randrange(2 * len(whole)))])
        if not content:
            return b""
    return bytes(content)


FUZZ = """
import random, resource, sys, time
sys.path.insert(0, "tests")
from pathlib import Path
import torch
from pspin_lite import _files as files
from test_files import TENSORS, mutated, same
path, whole = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
json_text = b'{"step": 12, "nested": {"a": [1, 2.5, null, "text"]}, "long": "' + b"x" * 200 + b'"}'
rng, slowest, refused = random.Random(1), 0.0, 0
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (virtual + (256 << 20),) * 2)
for turn in range(2500):
    reads = ((whole, files.read_tensors), (json_text, files.read_json))
    for content, read in reads:
        path.write_bytes(mutated(content, rng))
        start = time.process_time()
        try:
            found = read(path)
            assert read is files.read_json or same(found[0], TENSORS), "a changed tensor went unnoticed"
        except files.FileError as error:
            assert str(path) in str(error)
            refused += 1
        slowest = max(slowest, time.process_time() - start)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
print(refused, slowest < 2, grown < 64 << 10)
"""


@pytest.mark.fault(12)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited by way of /proc")
def test_mutated_files_are_our_error_within_bounded_memory_and_time(written):
    result = run(FUZZ, written)
    refused, quick, small = result.stdout.split() or ("0", "", result.stderr)
    assert (quick, small) == ("True", "True"), result.stdout + result.stderr
    assert int(refused) > 4000


# --- reading what is not a file -------------------------------------------------------------------


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path, words in (("missing", "No such file"), ("folder", "not a file"), ("pipe", "not a file")):
        for read in (files.read_tensors, files.read_json):
            with pytest.raises(FileError, match=words) as raised:
                read(tmp_path / path)
            assert str(tmp_path / path) in str(raised.value)


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"w": torch.ones(2)}, tmp_path / "x")
    with pytest.raises(FileError, match="without our hash"):
        files.read_tensors(tmp_path / "x")


@pytest.mark.parametrize("content", [b"[1]", b"3", b"null", b"", b"{", b"\xff\xfe", b'{"a": 1}x', b"[" * 10**5])
def test_json_that_is_no_object_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FileError, match=f"{tmp_path / 'x'}"):
        files.read_json(tmp_path / "x")


def test_json_beyond_all_measure_is_not_read(tmp_path):
    with open(tmp_path / "x", "wb") as file:
        file.truncate(files.JSON_LIMIT + 1)
    with pytest.raises(FileError, match="at most"):
        files.read_json(tmp_path / "x")


# --- 20: mode, links, the file being read ---------------------------------------------------------


@pytest.mark.fault(20)
def test_modes_are_kept_and_new_files_get_the_umasks(tmp_path):
    before = os.umask(0o027)
    try:
        files.write_text(tmp_path / "new", "x")
        assert os.umask(0o027) == 0o027, "the umask is as it was"
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o7777 == 0o640
    for mode in (0o600, 0o664, 0o444):
        (tmp_path / "new").chmod(mode)
        files.write_tensors(tmp_path / "new", TENSORS)
        assert (tmp_path / "new").stat().st_mode & 0o7777 == mode


@pytest.mark.fault(20)
def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "x")  # to nothing yet
    for value in (1, 2):
        files.write_json(tmp_path / "link", {"v": value})
        assert (tmp_path / "link").is_symlink()
        assert files.read_json(tmp_path / "real" / "x") == {"v": value}
    assert only(tmp_path / "real") == ["x"]


@pytest.mark.fault(20)
def test_writing_over_the_file_that_is_being_read(written):
    tensors, about = files.read_tensors(written)
    files.write_tensors(written, {name: torch.zeros_like(x) for name, x in TENSORS.items()})
    assert same(tensors, TENSORS), "they do not look into the file"
    files.write_tensors(written, tensors, about)
    tensors, _ = files.read_tensors(written)
    with open(written, "r+b") as file:  # even in place, by somebody else
        file.write(bytes(written.stat().st_size))
    assert same(tensors, TENSORS)


def test_whoever_reads_meanwhile_sees_one_version_or_the_other(tmp_path):
    path, versions = tmp_path / "x", [{"w": torch.full((20_000,), float(i))} for i in range(2)]
    files.write_tensors(path, versions[0])
    stop, problems, seen = threading.Event(), [], []

    def reader() -> None:
        while not stop.is_set():
            try:
                x = files.read_tensors(path)[0]["w"]
                assert len(x) == 20_000
                assert x.unique().numel() == 1
                seen.append(x[0].item())
            except Exception as error:
                problems.append(error)

    thread = threading.Thread(target=reader)
    thread.start()
    for i in range(500):  # the reader that opened a file twice failed about once in 300
        files.write_tensors(path, versions[i % 2])
    stop.set()
    thread.join()
    assert not problems
    assert set(seen) == {0.0, 1.0}
    assert only(tmp_path) == ["x"]


def test_what_cannot_be_written_names_the_path(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for path in ("missing/x", "file/x", "folder"):
        with pytest.raises(FileError, match="could not be written") as raised:
            files.write_text(tmp_path / path, "text")
        assert str(tmp_path / path) in str(raised.value)
    assert only(tmp_path) == ["file", "folder"]


# --- 13: keys -------------------------------------------------------------------------------------


@pytest.mark.fault(13)
@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"a": (2, 3)}, ["missing b"]),
        ({"a": (2, 3), "b": (4,), "c": (1,), "d": (1,)}, ["unexpected c", "unexpected d"]),
        ({"a": (3, 2), "b": (4,)}, ["a is torch.float32 [3, 2], expected torch.float32 [2, 3] (transposed?)"]),
        ({"a": (2, 4), "b": (4,)}, ["a is torch.float32 [2, 4], expected torch.float32 [2, 3]"]),
        ({"_orig_mod.a": (2, 3), "_orig_mod.b": (4,)}, ["torch.compile", "missing a", "unexpected _orig_mod.b"]),
        ({"module.a": (2, 3), "module.b": (4,)}, ["parallel", "missing b", "unexpected module.a"]),
    ],
    ids=["missing", "extra", "transposed", "shape", "compiled", "parallel"],
)
def test_names_that_do_not_fit_are_listed(result, words):
    expected = {"a": ((2, 3), torch.float32), "b": ((4,), torch.float32)}
    files.check_tensors("x", {name: torch.zeros(shape) for name, (shape, _) in expected.items()}, expected)
    with pytest.raises(FileError) as raised:
        files.check_tensors("x", {name: torch.zeros(shape) for name, shape in result.items()}, expected)
    assert all(word in str(raised.value) for word in words), str(raised.value)
    assert str(raised.value).count("a is") == sum("a is" in word for word in words)
    with pytest.raises(FileError, match=r"b is torch\.float16"):
        files.check_tensors("x", {"a": torch.zeros(2, 3), "b": torch.zeros(4).half()}, expected)
