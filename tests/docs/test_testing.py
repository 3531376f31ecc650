"""The tests in the guide about testing pass, as a reader would run them."""

import subprocess
import sys

from docs.pages import blocks


def test_the_tests_of_the_guide_pass_without_a_foliot(tmp_path, monkeypatch):
    for name in ("FOLIOT_URL", "FOLIOT_KEY"):
        monkeypatch.delenv(name, raising=False)
    application, *tests = (block.text for block in blocks("python", "docs/guides/testing.md"))
    (tmp_path / "shop.py").write_text(application)
    (tmp_path / "test_shop.py").write_text("\n\n".join(tests))
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:asyncio", "--rootdir", tmp_path]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "5 passed" in done.stdout, done.stdout + done.stderr
