"""Several metrics in one run, with rules in a file and a function in the folder that the job is started from."""

import json
import os
import subprocess
import sys
from pathlib import Path

RULES = """
cites: {regex: '\\[[0-9]+\\]'}
brief: {length: {max: 4, unit: words}}
"""
CHECKS = """
async def grounded(row, ask):
    return (await ask.entails(row["docs"][0]["text"], "alpha", role="mine")).label

def fails(row, ask):
    return {}[row["sample_id"][-1]]
"""


def test_several_metrics_from_the_command_line(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "my_checks.py").write_text(CHECKS)
    rows = [
        {
            "id": f"q{n}",
            "question": "Which?",
            "answers": [["alpha"]],
            "references": ["alpha beta gamma"],
            "docs": [{"title": "t", "text": "alpha beta", "answers_found": [1]}],
            "output": "Alpha beta [1]." if n % 2 else "It is alpha, as far as I know.",
        }
        for n in range(12)
    ]
    (tmp_path / "data.json").write_text(json.dumps(rows))
    words = [
        *("data=trust", f"data.path={tmp_path}/data.json", "task=em", "judge/entails=lexical", "compat=strict"),
        *("metrics=[trust_score,rules,overlap,code]", "metrics.rules.rules=rules.yaml", "replicates=100"),
        *("metrics.code.modules=[my_checks]", "metrics.code.functions.grounded=my_checks:grounded"),
        *("metrics.code.asks=[entails]", f"storage.root={tmp_path}/runs", "run=all"),
    ]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "jobs.evaluate", *words, *more]
        env = os.environ | {"PYTHONPATH": str(repo)}
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, timeout=300)

    done = run()
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "runs/all/summary.json").read_text())
    assert (summary["rule_cites"], summary["rule_brief"], summary["rules_passed"]) == (50.0, 50.0, 50.0)
    assert summary["code_grounded"] == 1.0
    assert summary["rouge1_n"] == 12
    assert summary["rouge1_low"] <= summary["rouge1"] <= summary["rouge1_high"]
    assert summary["bleu"] > 0
    assert "trust_score" in summary
    assert "tok:13a" in summary["bleu_signature"]
    assert (summary["num_scored"], summary["code_num_scored"], summary["rules_num_failed"]) == (12, 12, 0)
    page = (tmp_path / "runs/all/report.html").read_text()
    assert "Rule cites is broken" in page

    failed = run("metrics.code.functions.fails=my_checks:fails", "run=broken")
    assert failed.returncode == 3, failed.stderr
    assert "code_error" in failed.stderr
    summary = json.loads((tmp_path / "runs/broken/summary.json").read_text())
    assert summary["withheld"].startswith("code: 12 of 12 rows failed")
