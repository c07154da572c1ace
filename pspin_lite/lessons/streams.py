"""A folder that stands in for a data set on the Hugging Face hub, for notebook 09."""

from __future__ import annotations

from pathlib import Path


def invent(folder: Path, files: int = 3, documents: int = 400) -> Path:
    """Writes numbered documents into a folder laid out like fineweb-edu's repository: a README that names its files,
    and the files in parquet."""
    import pyarrow
    import pyarrow.parquet

    inside = folder / "sample" / "10BT"
    inside.mkdir(parents=True)
    config = "- config_name: sample-10BT\n  data_files:\n  - split: train\n    path: sample/10BT/*\n"
    (folder / "README.md").write_text(f"---\nconfigs:\n{config}---\n", encoding="utf-8")
    for f in range(files):
        texts = [f"document {documents * f + i}: " + "word " * (i % 7) for i in range(documents)]
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), inside / f"{f:03}_00000.parquet")
    return folder
