"""The folder that stands in for a data set on the hub is read like one."""

from __future__ import annotations

import pspin_lite as ps
from pspin_lite.lessons import streams


def test_invented_documents_are_streamed(tmp_path, monkeypatch):
    monkeypatch.setenv("PSPIN_FINEWEB", str(streams.invent(tmp_path / "hub", files=2, documents=300)))
    texts = [row["text"] for row in ps.corpora.open("fineweb-edu").load()]
    assert [int(text.split(":")[0].split()[1]) for text in texts] == list(range(600))
    assert texts[2] == "document 2: word word "
