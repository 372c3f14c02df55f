"""The JSON Schema (draft 2020-12) of the documents of siteproof.export.record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("verdict.schema.json")
DOCUMENTS = ("verdict", "nodes")


def of(document: str) -> dict[str, Any]:
    """The schema of a document, complete in itself. document: one of DOCUMENTS."""
    whole: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    if document == DOCUMENTS[0]:
        return whole
    about = {key: whole[key] for key in ("$schema", "$defs")}
    return {**about, "title": f"siteproof {document} --json", "$ref": f"#/$defs/{document}"}
