"""A dry run of `jobs.compare`."""

from trust.compare.config import CompareConfig
from trust.compare.job import open_pairs, paths, questions
from trust.dry_run import show


def show_compare(config: CompareConfig) -> None:
    """Prints which runs, groups and questions `jobs.compare` would compare, and what it would write."""
    base, new, pairs, alone = open_pairs(config)
    print("dry run of jobs.compare: no difference is computed, nothing is written")
    for each in (base, new):
        manifest = each.manifest
        show.line(each.label, f"{each.run.root}, evaluated {manifest.finished}, fingerprint {manifest.fingerprint}")
    show.line("judge", new.config.judge.describe())
    for pair in pairs:
        who = " / ".join(f"{group.model} with {group.prompt}" for group in (pair.base, pair.new))
        show.line("compared", f"{pair.new.dataset} ({pair.new.task}): {who}: {questions(base, new, pair, config)}")
    for sentence in alone:
        show.line("left out", sentence)
    show.line("slices", ", ".join(config.by) or "none")
    limits = [f"{key} by more than {-least:g} points" for key, least in config.limits.items()]
    show.line("fails", f"with exit code 4 where it loses: {', '.join(limits)}" if limits else "never (no fail_below)")
    show.line("would write", ", ".join(paths(base, new, config)))
