"""How far metrics agree with people, and what people's labels of a few rows say of all of them.

`items` reads what people said, `scored` joins the scores of evaluated runs, `coefficients` and `measure` do the arithmetic,
`corrected` applies `trust.ppi`. Needs no cluster.
"""

from trust.agree.config import AgreeConfig
from trust.agree.job import run_agree

__all__ = ["AgreeConfig", "run_agree"]
