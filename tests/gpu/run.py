"""What a GPU gains: the judge at T5 sizes and generation, beside the published way and bare vLLM; at most 8 minutes.

    python -m tests.gpu.run [--minutes 8] [WORD ...]

WORDs go to jobs.respond (`model=hf model.path=DIR`). Steps that no longer fit into the time are left out, and said so; a
step that fails is told in one line, and the next one runs.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import judge, judge_model, respond
from tests.bench.measure import parts, spread

_PUBLISHED_PAIRS, _MANY, _ROUNDS = 40, 626, 2
_PROMPTS, _MAX_TOKENS = 512, 128


@dataclass(frozen=True)
class Step:
    """One measurement.

    Attributes:
        words: of this module's command line that make a process of its own do only this step.
        seconds: what it may need; it is not begun with less left, and ended when the time is over.
    """

    name: str
    words: tuple[str, ...]
    seconds: float


def steps(gpus: int) -> list[Step]:
    """All steps, the most telling first."""
    found = [Step(f"judge of T5 size {size}", ("--judge", size), need) for size, need in (("base", 60), ("3b", 110))]
    found.append(Step("respond beside bare vLLM", ("--respond", "1"), 150))
    found += [
        Step(f"judge of T5 size {size}", ("--judge", size), need) for size, need in (("large", 70), ("small", 50))
    ]
    last = ("--respond", "2") if gpus > 1 else ("--arguments", "2")
    found.append(Step("tensor parallelism over two GPUs" + ("" if gpus > 1 else ": arguments only"), last, 20))
    return found


def run(plan: list[Step], minutes: float, start: Callable[[Step, float], str]) -> list[str]:
    """Starts each step that still fits; what became of each, in a line.

    Args:
        start: runs a step for at most so many seconds and says how it ended.
    """
    end = time.monotonic() + 60 * minutes
    lines = []
    for step in plan:
        left = end - time.monotonic()
        if left < step.seconds:
            lines.append(f"{step.name}: left out, {left:.0f} s left and it may need {step.seconds:.0f}")
        else:
            lines.append(f"{step.name}: {start(step, left)}")
        print(lines[-1], flush=True)
    return lines


def in_process(words: list[str]) -> Callable[[Step, float], str]:
    """Starts steps as processes of their own: a GPU's memory is free again after each."""

    def start(step: Step, seconds: float) -> str:
        print(f"--- {step.name}", flush=True)
        began = time.monotonic()
        command = [sys.executable, "-m", "tests.gpu.run", *step.words, *words]
        child = subprocess.Popen(command, start_new_session=True)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # with its engines and its Ray
            child.wait()
            return f"ended after {seconds:.0f} s, when the time was over"
        return f"{'measured' if code == 0 else f'failed ({code})'} in {time.monotonic() - began:.0f} s"

    return start


def judge_step(size: str) -> None:
    """Published way, our way and the bare loop with a judge of this size, on the golden pairs."""
    golden = judge.golden_pairs()
    with tempfile.TemporaryDirectory() as scratch:
        folder = judge_model.write(size, judge.SMALL, Path(scratch), "cuda")
        sides = judge.Comparison(folder, spread(golden, 128), threads=1, device="cuda")
        few, many = parts(spread(golden, _PUBLISHED_PAIRS), _ROUNDS), parts(spread(golden, _MANY), _ROUNDS)
        judge.say(sides.with_published(few), few, {"published": 1.0})
        judge.say(sides.without_published(many), many, {"bare loop": 0.95})


def respond_step(tensor_parallel: int, words: list[str]) -> None:
    """jobs.respond beside bare vLLM."""
    words = ["engine=gpu", f"engine.tensor_parallel={tensor_parallel}", *words]
    respond.compare(_PROMPTS, _MAX_TOKENS, 1, words)


def arguments_step(tensor_parallel: int, words: list[str]) -> None:
    """What vLLM makes of our arguments for several GPUs, where there are not as many."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    asked = respond.arguments(["engine=gpu", f"engine.tensor_parallel={tensor_parallel}", *words])
    taken = AsyncEngineArgs(**asked)
    print({key: getattr(taken, key) for key in ("tensor_parallel_size", "distributed_executor_backend", "dtype")})


def gpu_count() -> int:
    """GPUs that torch sees."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 2 where there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--judge", choices=tuple(judge_model.SHAPES), help="only this step")
    parser.add_argument("--respond", type=int, metavar="GPUS", help="only this step")
    parser.add_argument("--arguments", type=int, metavar="GPUS", help="only this step")
    parser.add_argument("words", nargs="*", metavar="WORD")
    given = parser.parse_args(arguments)
    gpus = gpu_count()
    if not gpus:
        print("tests.gpu.run: torch sees no GPU on this machine; run it where there is one", file=sys.stderr)
        return 2
    if given.judge:
        judge_step(given.judge)
    elif given.respond:
        respond_step(given.respond, given.words)
    elif given.arguments:
        arguments_step(given.arguments, given.words)
    else:
        print(f"{gpus} GPUs; at most {given.minutes:g} minutes", flush=True)
        lines = run(steps(gpus), given.minutes, in_process(given.words))
        print("\n".join(["--- measured and left out", *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
