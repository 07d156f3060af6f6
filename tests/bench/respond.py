"""The job jobs.respond beside bare vLLM on the same prompts, with the same sampling and engine arguments, in turns.

    python -m tests.bench.respond [--prompts 48] [--max-tokens 32] [--rounds 1] [WORD ...]

WORDs go to the job, as in `model=hf model.path=DIR engine=gpu`. The job runs as a user runs it; its engine's clock is
from the first unit's begin to the last one's end. The other side's is the one call of `LLM.chat`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from tests.bench import rows
from tests.bench.measure import Ratio, machine
from tests.bench.units import JobTimes, run_job
from tests.conftest import SHARED
from trust import config as configs
from trust import models, tables
from trust.ask.engine import engine_args
from trust.prompts import Prompt
from trust.respond import RespondConfig, clean

_BAR = 0.9


def write_samples(root: Path, count: int) -> None:
    """The run `samples` with `count` composed rows."""
    file = root / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows.make(SHARED / "data" / "trust_golden", count))))
    run_job("prepare", root, "samples", ["data=trust", f"data.path={file}"])


def job_words(words: list[str], max_tokens: int) -> list[str]:
    """What the job is told: short prompts, so that writing is a good part of the work."""
    return ["from_run=samples", "prompt.shots=0", "prompt.docs=2", f"sampling.max_tokens={max_tokens}", *words]


def arguments(words: list[str]) -> dict[str, Any]:
    """The engine arguments of the job that is told `words`."""
    config = configs.load("respond", RespondConfig, words)
    folder = models.fetch(config.model.path, config.model.revision)
    return engine_args(folder, config.engine, config.model)


def request(root: Path, words: list[str]) -> dict[str, Any]:
    """The job's own prompts, sampling and engine arguments, for bare vLLM."""
    config = configs.load("respond", RespondConfig, words)
    prompt = Prompt.load(config.prompt)
    samples = tables.to_rows(ds.dataset(root / "samples" / "samples").to_table())
    samples.sort(key=lambda row: row["sample_id"])
    return {
        "args": arguments(words),
        "messages": [prompt.render(row) for row in samples],
        "sampling": [config.sampling.of(row["sample_id"], 0) for row in samples],
    }


def bare(asked: dict[str, Any], root: Path) -> dict[str, Any]:
    """Bare vLLM's result, with `whole`: seconds of its process."""
    given, result = root / "request.json", root / "result.json"
    given.write_text(json.dumps(asked))
    command = [sys.executable, "-m", "tests.bench.bare_vllm", str(given), str(result)]
    quiet = {"VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | quiet)
    whole = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"bare vLLM ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(result.read_text()) | {"whole": whole}


def compare(prompts: int, max_tokens: int, rounds: int, words: list[str]) -> None:
    """Runs both sides `rounds` times and says tokens and answers a second, with and without starting."""
    words = job_words(words, max_tokens)
    jobs: list[JobTimes] = []
    others: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        write_samples(root, prompts)
        asked = request(root, words)
        for number in range(rounds):
            sides = [
                lambda run=f"job{number}": jobs.append(run_job("respond", root, run, words)),
                lambda: others.append(bare(asked, root)),
            ]
            for side in sides if number % 2 == 0 else reversed(sides):
                side()
            print(
                f"  round {number + 1}: job {jobs[-1].units:.1f} s, bare vLLM {others[-1]['generate']:.1f} s",
                flush=True,
            )
        answers = ds.dataset(root / "job0" / "responses").to_table(columns=["sample_id", "output"]).to_pylist()
    report(prompts, jobs, others, [row["output"] for row in sorted(answers, key=lambda row: row["sample_id"])])


def report(prompts: int, jobs: list[JobTimes], others: list[dict[str, Any]], outputs: list[str]) -> None:
    """Rates and ratios; outputs are the first job's, in the order of the prompts."""
    job, other = jobs[0], others[0]
    for name in ("prompt_tokens", "output_tokens"):
        print(f"{name}: job {job.totals[name]:.0f}, bare vLLM {other[name]}")
    same = sum(output == clean(text) for output, text in zip(outputs, other["texts"], strict=True))
    print(f"answers equal to the letter: {same} of {prompts}")
    for clock, ours, theirs in (
        ("engine's start left out", [j.units for j in jobs], [o["generate"] for o in others]),
        ("start-up and all", [j.whole for j in jobs], [o["whole"] for o in others]),
    ):
        tokens = Ratio.of(
            [j.totals["output_tokens"] / s for j, s in zip(jobs, ours, strict=True)],
            [o["output_tokens"] / s for o, s in zip(others, theirs, strict=True)],
        )
        answers = Ratio.of([prompts / s for s in ours], [prompts / s for s in theirs])
        print(f"job / bare vLLM, {clock}: tokens a second {tokens.against(_BAR)}")
        print(f"job / bare vLLM, {clock}: answers a second {answers.against(_BAR)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("words", nargs="*", metavar="WORD")
    words = parser.parse_args()
    print(f"jobs.respond, {words.prompts} prompts of at most {words.max_tokens} tokens; {machine()}", flush=True)
    compare(words.prompts, words.max_tokens, words.rounds, words.words)


if __name__ == "__main__":
    main()
