"""Where a search for settings is kept: a file of lines, in a folder that one process has."""

import json
from collections.abc import Iterable
from typing import Any

from optuna.storages.journal import BaseJournalBackend

from tsallax.storage.files import Directory

JOURNAL = "journal.jsonl"
LARGEST = 1 << 28  # bytes


class Journal(BaseJournalBackend):
    """Optuna's journal in a folder that is locked already; a line cut off by a kill is dropped."""

    def __init__(self, folder: Directory):
        self.folder = folder
        text = folder.read(JOURNAL, LARGEST) if folder.has(JOURNAL) else b""
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            folder.truncate(JOURNAL, len(whole))
        try:
            self.lines = [json.loads(line) for line in whole.splitlines()]
        except ValueError:
            raise ValueError(f"{folder.path} has a damaged {JOURNAL}") from None

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        return self.lines[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.folder.append(JOURNAL, "".join(json.dumps(log) + "\n" for log in logs).encode())
        self.folder.sync(JOURNAL)
        self.lines += logs
