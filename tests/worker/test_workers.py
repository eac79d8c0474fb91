"""What a worker does beside its trials."""

from __future__ import annotations

from pathlib import Path

from tests.worker.stand import Stand


def test_a_worker_imports_what_it_is_told_to_before_its_first_trial(stand: Stand, tmp_path: Path):
    (tmp_path / "evalhub_preloaded.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'imported')!r}).write_text('yes')\n"
    )
    stand.env |= {"EVALHUB_PRELOAD": "evalhub_preloaded", "PYTHONPATH": str(tmp_path)}
    stand.start_worker(threads=1)
    stand.until((tmp_path / "imported").exists, 20)
