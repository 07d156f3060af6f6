"""The published tables, done again: which rows can be run here, their runs, and ours beside what is printed.

`published` reads the printed numbers and how they were made (the YAML files beside it), `arithmetic` checks them and computes
what follows from counts alone, `plan` finds what is at hand, `job` runs it, `lines` and `markdown` put both side by side.
"""

from trust.reproduce.config import ReproduceConfig
from trust.reproduce.job import run_reproduce

__all__ = ["ReproduceConfig", "run_reproduce"]
