"""Normalising, sentences, citations, refusals, by language. Nothing here knows Ray, vLLM or torch."""
