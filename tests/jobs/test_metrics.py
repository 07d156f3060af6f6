"""The README's recipe of several metrics in one run: rules in a file, and a function and a metric of one's own in the folder that
the job is started from."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path


def test_several_metrics_from_the_command_line(tmp_path: Path, repo: Path) -> None:
    section = (repo / "README.md").read_text().split("## Rules, your own code, BLEU and ROUGE")[1].split("\n## ")[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.S | re.M)
    blocks = dict(reversed(found))  # the first of each kind
    (_, metric) = (text for kind, text in found if kind == "python")
    (tmp_path / "my_metric.py").write_text(metric)
    own = "metrics.brevity.module=my_metric metrics.brevity.most=30"
    assert own in section
    (tmp_path / "rules.yaml").write_text(blocks["yaml"])
    (tmp_path / "my_checks.py").write_text(blocks["python"])
    rows = [
        {
            "id": f"q{n}",
            "question": "Which?",
            "answers": [["alpha"]],
            "references": ["alpha beta gamma"],
            "docs": [{"title": "t", "text": "alpha beta (1)", "answers_found": [1]}],
            "output": "Alpha beta [1]." if n % 2 else "It is alpha, as far as I know.",
        }
        for n in range(12)
    ]
    (tmp_path / "answers.json").write_text(json.dumps(rows))
    (command,) = [line for line in blocks[""].replace("\\\n", " ").splitlines() if line.startswith("python -m ")]
    command = command.replace("judge/entails=t5", "judge/entails=lexical").removeprefix("python")

    words = ["bash", "-c", f"{sys.executable} {command} replicates=100 {own.replace('30', '4')}"]
    env = os.environ | {"PYTHONPATH": str(repo)}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=env, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "runs/mine/summary.json").read_text())
    assert (summary["rule_cites"], summary["rule_brief"], summary["rules_passed"]) == (50.0, 100.0, 50.0)
    assert summary["code_names_a_document"] == 0.5
    assert (summary["brevity_rate"], summary["brevity_rate_n"], summary["brevity_num_scored"]) == (50.0, 12, 12)
    assert summary["brevity_rate_low"] < 50 < summary["brevity_rate_high"]
    assert summary["rouge1_n"] == 12
    assert summary["rouge1_low"] <= summary["rouge1"] <= summary["rouge1_high"]
    assert summary["bleu"] > 0
    assert "trust_score" in summary
    assert "tok:13a" in summary["bleu_signature"]
    assert (summary["num_scored"], summary["code_num_scored"], summary["rules_num_failed"]) == (12, 12, 0)
    page = (tmp_path / "runs/mine/report.html").read_text()
    assert "Rule cites is broken" in page
