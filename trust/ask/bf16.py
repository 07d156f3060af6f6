"""bfloat16 on CPUs that have no instructions for it.

There torch falls back to a matrix product that is many times slower than float32's. A product of bfloat16 numbers is
exact in float32, so that multiplying in float32 and rounding each sum once gives what the instructions give, up to the
order of summation.
"""

from typing import Any

import psutil


def without_instructions() -> bool:
    """Whether this CPU multiplies bfloat16 matrices by the slow way."""
    import torch

    return not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def multiply_in_float32(model: Any, keep_bytes: int | None = None) -> None:
    """Replaces the model's bfloat16 linear layers, in place.

    Args:
        keep_bytes: memory for float32 copies of weights; layers beyond it are widened anew in every batch. None takes a
            quarter of what is available now.
    """
    import torch

    class Float32Linear(torch.nn.Module):
        def __init__(self, layer: torch.nn.Linear, keep: bool) -> None:
            super().__init__()
            self.weight = layer.weight  # T5 looks at its dtype
            self._wide = layer.weight.detach().float() if keep else None
            self._bias = None if layer.bias is None else layer.bias.detach().float()

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            weight = self.weight.float() if self._wide is None else self._wide
            return torch.nn.functional.linear(inputs.float(), weight, self._bias).to(inputs.dtype)

    left = psutil.virtual_memory().available // 4 if keep_bytes is None else keep_bytes
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and child.weight.dtype == torch.bfloat16:
                size = child.weight.numel() * torch.float32.itemsize
                setattr(module, name, Float32Linear(child, size <= left))
                left -= size if size <= left else 0
