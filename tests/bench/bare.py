"""The best bare loop a person would write around a T5 judge: no repeats, sorted by length, one decoder step, the batch
size that is fastest here. No rows, no store, no units."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench.measure import Answers, Pair
from trust.ask import bf16
from trust.ask.t5 import TEMPLATE

_SIZES = (1, 2, 4, 8, 16, 32)
_SIZES_ON_GPU = (8, 16, 32, 64, 128)


class BareLoop:
    """A loaded judge.

    Args:
        widened: with this suite's float32 products in place of torch's own bfloat16 ones.
    """

    def __init__(self, folder: Path, threads: int, device: str = "cpu", widened: bool = False) -> None:
        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        if device == "cpu":
            torch.set_num_threads(threads)
        self._torch, self._device = torch, device
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.bfloat16).to(device).eval()
        if widened:
            bf16.multiply_in_float32(self._model)
        self._yes = self._tokenizer("1", add_special_tokens=False).input_ids[0]
        self.batch_size = 1

    def judge(self, pairs: Sequence[Pair]) -> Answers:
        torch, started = self._torch, time.perf_counter()
        texts = [TEMPLATE.format_map(pair) for pair in pairs]
        unique = list(dict.fromkeys(texts))
        rows = self._tokenizer(unique).input_ids
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
        labels: dict[str, int] = {}
        with torch.inference_mode():
            for first in range(0, len(order), self.batch_size):
                batch = order[first : first + self.batch_size]
                inputs = self._tokenizer.pad({"input_ids": [rows[i] for i in batch]}, return_tensors="pt")
                begin = torch.full((len(batch), 1), self._model.config.decoder_start_token_id, device=self._device)
                logits = self._model(**inputs.to(self._device), decoder_input_ids=begin, use_cache=False).logits
                said = (logits[:, -1].argmax(-1) == self._yes).int().tolist()
                labels |= {unique[i]: label for i, label in zip(batch, said, strict=True)}
        return Answers([labels[text] for text in texts], time.perf_counter() - started)

    def find_batch_size(self, sample: Sequence[Pair]) -> int:
        """Takes the batch size that is fastest on `sample`, the better of two tries each."""

        def seconds(size: int) -> float:
            self.batch_size = size
            return min(self.judge(sample).seconds for _ in range(2))

        sizes = _SIZES if self._device == "cpu" else _SIZES_ON_GPU
        self.batch_size = min((size for size in sizes if size <= max(len(sample), 1)), key=seconds)
        return self.batch_size


def best(folder: Path, threads: int, device: str, sample: Sequence[Pair], say: Callable[[str], None]) -> BareLoop:
    """The bare loop of the faster kind: with torch's own products, or with this suite's on CPUs without bfloat16."""
    kinds = {"torch's own bfloat16 products": False}
    if device == "cpu" and bf16.without_instructions():
        kinds["this suite's float32 products"] = True
    found: dict[str, tuple[float, BareLoop]] = {}
    few = sample[:: max(1, len(sample) // 4)]
    for name, widened in kinds.items():
        loop = BareLoop(folder, threads, device, widened)
        loop.judge(few[:1])
        found[name] = (loop.judge(few).rate, loop)
    name = max(found, key=lambda kind: found[kind][0])
    rates = ", ".join(f"{kind} {rate:.2f}" for kind, (rate, _) in found.items())
    loop = found[name][1]
    size = loop.find_batch_size(sample)
    say(f"bare loop: {name} at batch {size} (one by one on {len(few)} pairs: {rates} pairs/s)")
    return loop
