"""Dry runs: what a job would do and what it would take, from its config, its preflight and a small sample of its rows.

One module a job, which prints the job's plan as the job itself makes it. A dry run loads no model weights, starts neither Ray
nor an actor (it joins a cluster only where one is named, to read what its nodes have), and writes nothing. What is wrong with
config, data or models is the same error as in the run; what only writing or starting can show is left to the run, and said.
"""
