"""A tiny multi-vector encoder with random weights."""

from pathlib import Path

from tests.trust.ask.nli_models import write as write_bert


def write(folder: Path) -> Path:
    """A ColBERT of random weights in `folder`, as sentence-transformers saves it."""
    import torch
    from sentence_transformers import MultiVectorEncoder

    base = write_bert(folder / "bert")
    torch.manual_seed(0)
    MultiVectorEncoder(str(base), device="cpu").save_pretrained(str(folder / "colbert"))
    return folder / "colbert"
