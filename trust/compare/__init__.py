"""Two evaluated runs over the same questions: paired differences with intervals, and whether they let a build pass.

`runs` finds what belongs together, `shared` narrows it to the questions of both, `differences` does the arithmetic,
`gate` says what is worse than allowed, `markdown` puts it in words. Needs no cluster: it reads the sums that evaluations
leave, not their rows.
"""

from trust.compare.config import CompareConfig
from trust.compare.job import run_compare

__all__ = ["CompareConfig", "run_compare"]
