"""The two runs, whether their numbers may be compared, and which of their groups belong together."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from trust import config as configs
from trust.compare.config import CompareConfig
from trust.config import nearest
from trust.errors import ConfigError, PreflightError
from trust.evaluate import EvaluateConfig
from trust.fingerprint import differences
from trust.runs import Manifest, Run
from trust.storage import StorageConfig, absolute, open_storage
from trust.sums import group_of

_MUST_AGREE = ("judge", "compat", "metrics", "replicates")  # else the difference is not the model's


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation; `label` is `base` or `new`."""

    label: str
    run: Run
    manifest: Manifest
    config: EvaluateConfig

    def groups(self) -> set["Group"]:
        """Data sets, tasks, models and prompts that it holds numbers of."""
        found = map(group_of, self.run.sum_names("evaluate"))
        return {Group(*(group[key] for key in Group._fields)) for group in found}


class Group(NamedTuple):
    """Rows that have one summary."""

    dataset: str
    task: str
    model: str
    prompt: str

    @property
    def data(self) -> tuple[str, str]:
        return self.dataset, self.task

    @property
    def who(self) -> tuple[str, str]:
        return self.model, self.prompt


class Pair(NamedTuple):
    """Groups over the same data, whose numbers are subtracted."""

    base: Group
    new: Group


def open_run(label: str, name: str, storage: StorageConfig) -> Evaluation:
    """The evaluation of a run given by name or by the address of its folder.

    Raises:
        PreflightError: there is no such run, or `jobs.evaluate` has not finished in it.
    """
    root, _, last = absolute(name).rpartition("/") if "/" in name else (storage.root, "", name)
    run = Run(open_storage(root, storage), root, last)
    manifest = run.manifest("evaluate")
    if manifest is None:
        others = run.storage.list_folders(absolute(root))
        raise PreflightError(f"{label}={name}: no finished evaluation in {run.root}{nearest(last, others)}")
    return Evaluation(label, run, manifest, configs.build(EvaluateConfig, manifest.config))


def check(base: Evaluation, new: Evaluation, by: Iterable[str]) -> None:
    """Whether the two were measured in the same way and hold the slices `by`.

    Raises:
        PreflightError: names each setting that differs with both values, or the slice that is missing.
    """
    apart = [
        each
        for key in _MUST_AGREE
        for each in differences({key: base.manifest.identity.get(key)}, {key: new.manifest.identity.get(key)})
    ]
    if any(key.startswith("judge") for key, _, _ in apart):  # hashes say nothing to people
        apart += differences({"judge": configs.plain(base.config.judge)}, {"judge": configs.plain(new.config.judge)})
    if apart:
        shown = "; ".join(f"{key} is {_show(old)} in base, {_show(now)} in new" for key, old, now in apart)
        raise PreflightError(
            f"base={base.run.name} and new={new.run.name} were not measured in the same way ({shown}): evaluate one of "
            "them again under another run="
        )
    for name in by:
        for each in (base, new):
            if name not in each.config.slices:
                wanted = ",".join([*each.config.slices, name])
                raise PreflightError(
                    f"by: {each.label}={each.run.name} was not evaluated by {name}: run jobs.evaluate with "
                    f"slices=[{wanted}] and another run= (or overwrite=true); what is judged already is not asked again"
                )


def pair_up(base: Evaluation, new: Evaluation, config: CompareConfig) -> tuple[list[Pair], list[str]]:
    """Groups over the same data set and task, and a sentence for each data set that only one run has.

    Raises:
        ConfigError: there are several models or prompts, and none was chosen.
        PreflightError: the runs have no data set in common.
    """
    olds = _choose(base, config.base_model, config.base_prompt)
    news = _choose(new, config.new_model, config.new_prompt)
    pairs: list[Pair] = []
    for data in sorted({group.data for group in olds} & {group.data for group in news}):
        pairs += _match(
            [group for group in olds if group.data == data], [group for group in news if group.data == data]
        )
    if not pairs:
        raise PreflightError(
            f"base={base.run.name} and new={new.run.name} have no data set in common: base has {_data(olds)}, new has "
            f"{_data(news)}; data.name=NAME gives a data set its name, which else is that of the file"
        )
    alone = [
        f"only {each.label} has {dataset} ({task})"
        for each, own, others in ((base, olds, news), (new, news, olds))
        for dataset, task in sorted({group.data for group in own} - {group.data for group in others})
    ]
    return pairs, alone


def _choose(evaluation: Evaluation, model: str | None, prompt: str | None) -> list[Group]:
    groups = sorted(evaluation.groups())
    for name, value in (("model", model), ("prompt", prompt)):
        if value is not None:
            known = sorted({getattr(group, name) for group in groups})
            configs.one_of(f"{evaluation.label}_{name}", value, known)
            groups = [group for group in groups if getattr(group, name) == value]
    return groups


def _match(olds: list[Group], news: list[Group]) -> Iterator[Pair]:
    if len(olds) == len(news) == 1:
        yield Pair(olds[0], news[0])
        return
    same = {group.who: group for group in olds}
    found = [Pair(same[group.who], group) for group in news if group.who in same]
    if not found:
        raise ConfigError(
            f"{olds[0].dataset} ({olds[0].task}) is there with several models or prompts: base has {_who(olds)}, new has "
            f"{_who(news)}; choose with base_model=, base_prompt=, new_model= and new_prompt="
        )
    yield from found


def _data(groups: Iterable[Group]) -> str:
    return ", ".join(f"{dataset} ({task})" for dataset, task in sorted({group.data for group in groups})) or "none"


def _who(groups: Iterable[Group]) -> str:
    return ", ".join(f"{group.model} with {group.prompt}" for group in groups)


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]
