"""Building Trust-Align data: one module a step with its arithmetic (`label`, `curate`, `recombine`, `positives`, `negatives`,
`pair`), which knows nothing of Ray, vLLM or torch, and one beside it (`label_job`, ...) with the job's config, plan and worker.
"""
