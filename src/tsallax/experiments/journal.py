"""The storage of a search for settings: a file of lines, in a folder locked by one process."""

import json
from collections.abc import Iterable
from io import BufferedReader
from typing import Any

from optuna.storages.journal import BaseJournalBackend

from tsallax.storage.files import Directory

JOURNAL = "journal.jsonl"
LONGEST = 1 << 20  # most bytes of a line


class Journal(BaseJournalBackend):
    """Optuna's journal in a locked folder; an incomplete last line, after a kill, is dropped."""

    def __init__(self, folder: Directory):
        self.folder, self.lines = folder, []
        if not folder.has(JOURNAL):
            return
        whole = 0  # bytes of complete lines
        with folder.open(JOURNAL) as raw, BufferedReader(raw) as file:
            try:
                while (line := file.readline(LONGEST)).endswith(b"\n"):
                    self.lines.append(json.loads(line))
                    whole += len(line)
            except (ValueError, RecursionError):
                raise ValueError(f"{folder.path} has a damaged {JOURNAL}") from None
        if len(line) == LONGEST:
            raise ValueError(f"{folder.path} has a line of {LONGEST:,} bytes in its {JOURNAL}")
        if line:
            folder.truncate(JOURNAL, whole)

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        return self.lines[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.folder.append(JOURNAL, "".join(json.dumps(log) + "\n" for log in logs).encode())
        self.folder.sync(JOURNAL)
        self.lines += logs
