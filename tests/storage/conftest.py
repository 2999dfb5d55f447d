"""Something outside the folders that are read and written."""

import pytest

from support.outside import snapshot


@pytest.fixture
def outside(tmp_path):
    """A tree that nothing may touch; checked when the test ends."""
    root = tmp_path / "outside"
    (root / "deep").mkdir(parents=True)
    (root / "file").write_text("keep")
    (root / "deep" / "file").write_text("keep")
    before = snapshot(root)
    yield root
    assert snapshot(root) == before
