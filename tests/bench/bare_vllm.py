"""Bare vLLM on prompts from a file, in a process of its own: `LLM.chat` on all of them at once.

    python -m tests.bench.bare_vllm REQUEST.json RESULT.json

REQUEST: `args` (of the engine), `messages` (a list a prompt), `sampling` (options a prompt). RESULT: `start` and `generate`
in seconds, `prompt_tokens`, `output_tokens`, `texts`.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Starts an engine, answers all prompts, and says how long each took."""
    began = time.perf_counter()
    from vllm import LLM, SamplingParams

    llm = LLM(**request["args"])
    started = time.perf_counter()
    sampling = [SamplingParams(**options) for options in request["sampling"]]
    outputs = llm.chat(request["messages"], sampling, use_tqdm=False)
    ended = time.perf_counter()
    return {
        "start": started - began,
        "generate": ended - started,
        "prompt_tokens": sum(len(output.prompt_token_ids) for output in outputs),
        "output_tokens": sum(len(output.outputs[0].token_ids) for output in outputs),
        "texts": [output.outputs[0].text for output in outputs],
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()))))
