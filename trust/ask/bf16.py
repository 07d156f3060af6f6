"""bfloat16 on CPUs that have no instructions for it.

There torch falls back to a matrix product that is many times slower than float32's. A product of bfloat16 numbers is
exact in float32, so that multiplying in float32 and rounding each sum once gives what the instructions give, up to the
order of summation.
"""

from typing import Any


def without_instructions() -> bool:
    """Whether this CPU multiplies bfloat16 matrices by the slow way."""
    import torch

    return not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def multiply_in_float32(model: Any) -> None:
    """Replaces the model's bfloat16 linear layers, in place; takes twice their memory again."""
    import torch

    class Float32Linear(torch.nn.Module):
        def __init__(self, layer: torch.nn.Linear) -> None:
            super().__init__()
            self.weight = layer.weight  # T5 looks at its dtype
            self._wide = layer.weight.detach().float()
            self._bias = None if layer.bias is None else layer.bias.detach().float()

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(inputs.float(), self._wide, self._bias).to(inputs.dtype)

    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and child.weight.dtype == torch.bfloat16:
                setattr(module, name, Float32Linear(child))
