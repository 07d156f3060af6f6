"""Judges of any T5 size for timing: the published shapes with random weights.

Such a judge says "1" to everything and then ends, so that it costs what a trained one of its size costs: the published way
stops after two tokens. Its labels say nothing.
"""

import shutil
from pathlib import Path
from typing import Any

# Shapes of google/t5-v1_1-*: d_model, d_ff, layers (each of encoder and decoder), heads.
SHAPES = {
    "small": (512, 1024, 8, 6),
    "base": (768, 2048, 12, 12),
    "large": (1024, 2816, 24, 16),
    "3b": (2048, 5120, 24, 32),
}
_VOCABULARY = 32_128
_MARK = 1000.0  # far above what random layers write


def write(size: str, tokenizer: Path, folder: Path, device: str = "cpu") -> Path:
    """A judge of `size` in `folder`, with the tokenizer of the judge in `tokenizer`; bfloat16."""
    import torch
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    d_model, d_ff, layers, heads = SHAPES[size]
    config = T5Config(
        vocab_size=_VOCABULARY,
        d_model=d_model,
        d_kv=64,
        d_ff=d_ff,
        num_layers=layers,
        num_heads=heads,
        feed_forward_proj="gated-gelu",
        decoder_start_token_id=0,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = T5ForConditionalGeneration(config)
    finally:
        torch.set_default_dtype(torch.float32)
    _end_after_one_token(model, AutoTokenizer.from_pretrained(tokenizer))
    model.save_pretrained(folder)
    for path in (*tokenizer.glob("tokenizer*"), *tokenizer.glob("spiece.model")):
        shutil.copy(path, folder)
    return folder


def _end_after_one_token(model: Any, tokenizer: Any) -> None:
    """Marks tokens in two dimensions of the embeddings, which are also the head: of all products of a mark with another,
    that of the start is largest with "1", and that of "1" with the end."""
    import torch

    yes = tokenizer("1", add_special_tokens=False).input_ids[0]
    marks = {model.config.decoder_start_token_id: (0.5, 0.0), yes: (1.0, 1.0), tokenizer.eos_token_id: (0.0, 4.0)}
    with torch.no_grad():
        model.shared.weight[:, :2] = 0.0
        for token, mark in marks.items():
            model.shared.weight[token, :2] = _MARK * torch.tensor(mark)
