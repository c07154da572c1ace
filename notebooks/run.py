"""Executes the notebooks in order, without a screen. Imports nothing heavy: the first cell should start at once.

python notebooks/run.py --out build/notebooks   executed copies, from which docs/book/build.py makes the book
python notebooks/run.py --store                 outputs stored in the notebooks themselves
python notebooks/run.py --store 05 06           those alone
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
CELL_TIMEOUT = 1800  # seconds
os.environ.setdefault(
    "OMP_WAIT_POLICY", "passive"
)  # on a busy machine, threads that spin when idle take it all


class Failed(Exception):
    """A notebook did not run; the message says which cell and why."""


def execute(notebook: NotebookNode, folder: Path, label: str, screen) -> float:
    """Runs every cell of `notebook` in place, in `folder`; returns seconds. Raises Failed."""
    total = sum(cell.cell_type == "code" for cell in notebook.cells)
    done = 0

    def show(cell: NotebookNode, cell_index: int) -> None:
        nonlocal done
        if cell.cell_type == "code":
            done += 1
            if screen.isatty():
                print(
                    f"\r{label}  cell {done}/{total} ", end="", file=screen, flush=True
                )

    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=show,
        record_timing=False,
        coalesce_streams=True,  # one output for what a cell prints, however busy the machine is
        extra_arguments=[
            "--log-level=40"
        ],  # errors only: a kernel warns at every start about how it is connected
    )
    start = time.monotonic()
    try:
        client.execute()
    except CellExecutionError as error:
        raise Failed(
            f"cell {done} of {total}: {error.ename}: {plain(error.evalue)}\n{indent(plain(error.traceback))}"
        ) from None
    except (DeadKernelError, TimeoutError) as error:
        raise Failed(
            f"cell {done} of {total}: {type(error).__name__}: {error}"
        ) from None
    return time.monotonic() - start


def tidy(notebook: NotebookNode) -> None:
    """Leaves only what is the same on every machine, so that a stored notebook changes when its content does."""
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            fold(cell)
        for output in cell.get(
            "outputs", []
        ):  # a widget lives in its kernel: what is stored stands beside it
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)


def fold(cell: NotebookNode) -> None:
    """Hides the code of a cell that only draws; it begins with a comment `# Figure: ...` or `# Widget: ...`."""
    tags = [tag for tag in cell.metadata.pop("tags", []) if tag != "hide-input"]
    cell.metadata.pop("jupyter", None)
    if cell.source.startswith(("# Figure: ", "# Widget: ")):
        tags.append("hide-input")  # the book
        cell.metadata["jupyter"] = {"source_hidden": True}  # JupyterLab
    if tags:
        cell.metadata["tags"] = tags


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def indent(text: str) -> str:
    return "\n".join("    " + line for line in text.strip().splitlines()[-30:])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=Path, help="folder for executed copies")
    target.add_argument(
        "--store", action="store_true", help="store outputs in the notebooks themselves"
    )
    parser.add_argument(
        "--notebooks",
        type=Path,
        default=HERE,
        help="folder of the notebooks (default: this one)",
    )
    parser.add_argument(
        "only", nargs="*", metavar="NN", help="how names begin; default: all"
    )
    args = parser.parse_args(argv)

    begins = tuple(args.only) or ("",)
    paths = [
        path
        for path in sorted(args.notebooks.glob("[0-9][0-9]_*.ipynb"))
        if path.name.startswith(begins)
    ]
    if not paths:
        print(
            f"no notebooks in {args.notebooks} {' '.join(args.only)}".strip(),
            file=sys.stderr,
        )
        return 1
    out = args.notebooks if args.store else args.out
    out.mkdir(parents=True, exist_ok=True)
    width = max(len(path.stem) for path in paths)
    for i, path in enumerate(paths, 1):
        label = f"[{i}/{len(paths)}] {path.stem:<{width}}"
        notebook = nbformat.read(path, as_version=4)
        failure = seconds = None
        try:
            seconds = execute(notebook, path.parent, label, sys.stdout)
        except Failed as error:
            failure = error
        tidy(notebook)
        if not (
            args.store and failure
        ):  # what is stored always comes from a run that passed
            nbformat.write(notebook, out / path.name)
        start = "\r" if sys.stdout.isatty() else ""
        if failure:
            print(f"{start}{label}  FAILED", flush=True)
            print(f"{path.name}, {failure}", file=sys.stderr)
            return 1
        cells = sum(cell.cell_type == "code" for cell in notebook.cells)
        print(f"{start}{label}  {cells} cells in {seconds:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
