"""A small data set of the project's own, for first runs and tests: 72 questions, each with five documents.

Three JSON Lines files in the published Trust-Score form, one a task: `em` (28 questions with one to three short
answers), `em5` (22 that ask for a list) and `cm` (22 with three gold claims). About 60 % are answerable from their
documents; 16 are not in English. The text was written for this project and states well-known facts. It is far too
small to rank models with.

To build from there are three files more, `build_em`, `build_em5` and `build_cm` (50 questions of a train split, without
documents), and `corpus.jsonl`, 292 passages. It answers about two thirds of them, mostly in several places, and holds
passages on the same subjects that do not answer the others.
"""

from pathlib import Path

from trust.errors import ConfigError

TASKS = ("em", "em5", "cm")


def path(task: str) -> Path:
    """The demo file of `task`.

    Args:
        task: `em`, `em5` or `cm`.

    Raises:
        ConfigError: there is no demo data for this task.
    """
    if task not in TASKS:
        raise ConfigError(f"no demo data for task {task!r}; there is {', '.join(TASKS)}")
    return Path(__file__).parent / f"{task}.jsonl"
