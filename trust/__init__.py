"""Measure, build and align trustworthy retrieval-augmented language models.

from trust import RunConfig, trust_score
"""

from trust.api import RunConfig, trust_score

RUN_Config = RunConfig
TRUST_SCORE = trust_score

__all__ = ["TRUST_SCORE", "RUN_Config", "RunConfig", "trust_score"]
