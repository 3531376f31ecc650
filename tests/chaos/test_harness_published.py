"""What stands above a published proof, where it goes, and what is left of a run that was none."""

import subprocess
from pathlib import Path

from chaos import published
from chaos.__main__ import REPORT, clear
from chaos.records import REFUSED, _refused


def test_a_proof_is_named_after_its_commit_and_says_when_the_tree_differed(tmp_path: Path):
    def git(*arguments: str) -> str:
        own = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(own, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")
    head = git("rev-parse", "--short", "HEAD")
    (tmp_path / "notes.md").write_text("what is not tried makes no difference")
    assert published.commit(tmp_path) == head
    (tmp_path / "src" / "a.py").write_text("2")
    assert published.commit(tmp_path) == f"{head}-dirty"


def test_the_machine_is_described():
    found = published.machine()
    assert all(found.values())
    assert int(found["PostgreSQL"].partition(".")[0]) >= 15
    assert published.folder_for("chaos").name == f"chaos-{found['commit']}"


def test_of_a_run_that_is_no_proof_only_the_report_stays(tmp_path: Path):
    for name in ("logs", REPORT):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "ledger.jsonl").touch()
    clear(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [REPORT]


def test_refused_results_are_counted_by_the_workers_word(tmp_path: Path):
    log = tmp_path / "worker-0.log"
    log.write_text(
        f"22:01:02 worker     {REFUSED}  runs=3\n22:01:03 worker  ready  runs=9\n22:01:04 {REFUSED}  runs=4\n"
    )
    assert _refused(log) == 7
