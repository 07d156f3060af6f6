"""Retrieval: the passages of a corpus that fit a question best.

`corpus` reads a corpus into clean parts, `terms` and `bm25` count words, `dense` compares vectors of texts, `late` vectors of
tokens, `fusion` joins what several found. Each has its job beside it (`corpus_job`, `bm25_job`, ...); `job` runs them in a row.
"""
