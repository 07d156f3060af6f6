"""The T5 judge beside the published way and the best bare loop, on the golden pairs, in turns.

    python -m tests.bench.judge [--size small|base] [--pairs N] [--rounds 5] [--threads 2]

Every round judges its own share of the pairs on all sides; medians, lowest and highest of the rounds are given. The small
judge is the real one of the golden pairs, whose labels are known; base is a model of T5-base size with random weights,
where the published way takes part on few pairs (--pairs) and the other two once more on many.
"""

import argparse
import asyncio
import gzip
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench import bare, judge_model, published
from tests.bench.measure import Answers, Pair, Ratio, Side, machine, parts, rate, spread, take_turns, unequal
from tests.conftest import SHARED
from trust.ask.runner import Ledger, Runner
from trust.ask.t5 import T5Config, T5Judge

SMALL = SHARED / "models" / "tiny_true_nli"
_BARS = {"small": 1.7, "base": 1.2}  # of the published rate
_BAR_BARE = 0.95  # of the best bare loop's, where the cores are the limit
_PAIRS = {"small": None, "base": 10}
_MANY = 100
_SAMPLE = {"small": 64, "base": 24}


def golden_pairs() -> list[Pair]:
    """Every pair the published evaluator judged on the golden items, with its label."""
    found: list[Pair] = []
    for path in sorted((SHARED / "data" / "trust_golden").glob("*/nli_labels.json.gz")):
        with gzip.open(path, "rt") as file:
            found += json.load(file)
    return found


class OurWay:
    """The judge behind the runner, as jobs.evaluate uses it."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._judge = T5Judge(T5Config(model=str(folder), threads=threads))

    def judge(self, pairs: Sequence[Pair]) -> Answers:
        started = time.perf_counter()
        labels = asyncio.run(self._ask(pairs))
        return Answers(labels, time.perf_counter() - started)

    async def _ask(self, pairs: Sequence[Pair]) -> list[int]:
        ask = Runner({"entails": self._judge}).ask_for("bench", Ledger())
        verdicts = await asyncio.gather(*(ask.entails(pair["premise"], pair["hypothesis"]) for pair in pairs))
        return [verdict.label for verdict in verdicts]


class Comparison:
    """The sides of one judge.

    Args:
        sample: pairs that the bare loop's batch size is found on.
    """

    def __init__(self, folder: Path, sample: Sequence[Pair], threads: int, device: str = "cpu") -> None:
        ours = OurWay(folder, threads)
        ours.judge(sample[:2])
        loop = bare.best(folder, threads, device, sample, print)
        self._sides: dict[str, Side] = {
            "published": lambda pairs: published.judge(folder, pairs, threads, device),
            "ours": ours.judge,
            "bare loop": loop.judge,
        }

    def with_published(self, rounds: Sequence[Sequence[Pair]]) -> dict[str, list[Answers]]:
        """All three sides in turns."""
        return take_turns(self._sides, rounds)

    def without_published(self, rounds: Sequence[Sequence[Pair]]) -> dict[str, list[Answers]]:
        """Ours and the bare loop in turns."""
        return take_turns({name: side for name, side in self._sides.items() if name != "published"}, rounds)


def say(found: dict[str, list[Answers]], rounds: Sequence[Sequence[Pair]], bars: dict[str, float]) -> None:
    """Rates, ratios and labels. A bar that is not met is said and fails nothing: it is the machine's as much as ours."""
    print(", ".join(f"{name} {rate(answers):.2f}" for name, answers in found.items()) + " pairs/s (medians)")
    ours = [answer.rate for answer in found["ours"]]
    pairs = sum(len(part) for part in rounds)
    for name, bar in bars.items():
        print(f"ours / {name}: " + Ratio.of(ours, [answer.rate for answer in found[name]]).against(bar))
        print(
            f"labels of ours that differ from those of {name}: {unequal(found['ours'], rounds, found[name])} of {pairs}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("small", "base"), default="small")
    parser.add_argument("--pairs", type=int, help="on all three sides, in all rounds together; 10 with base, else all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    words = parser.parse_args()
    golden = golden_pairs()
    rounds = parts(spread(golden, words.pairs or _PAIRS[words.size]), words.rounds)
    print(f"{words.size} judge, {sum(map(len, rounds))} golden pairs in {words.rounds} rounds; {machine()}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = SMALL if words.size == "small" else judge_model.write(words.size, SMALL, Path(scratch))
        sides = Comparison(folder, spread(golden, _SAMPLE[words.size]), words.threads)
        found = sides.with_published(rounds)
        print(published.verdict_on_machine(words.size, rate(found["published"])))
        if words.size == "small":
            say(found, rounds, {"published": _BARS["small"], "bare loop": _BAR_BARE})
            print(f"labels of ours that differ from the known ones: {unequal(found['ours'], rounds)}")
        else:
            say(found, rounds, {"published": _BARS["base"]})
            many = parts(spread(golden, _MANY), words.rounds)
            say(sides.without_published(many), many, {"bare loop": _BAR_BARE})


if __name__ == "__main__":
    main()
