"""Entailment by any sequence-classification model for natural language inference, of two classes or three.

p_yes is the softmax probability of entailment over all classes. The label is 1 where entailment is the most likely class,
as these models are trained and scored (MNLI, XNLI), or where p_yes reaches `threshold`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trust import models
from trust.ask import AskFailed
from trust.ask.transformer import Encoded, TransformerConfig, TransformerJudge
from trust.errors import ConfigError, PreflightError
from trust.fingerprint import fingerprint
from trust.storage import Storage

MODEL = "MoritzLaurer/mDeBERTa-v3-base-xnli-multilingual-nli-2mil7"
# fmt: off
LANGUAGES = (
    "ar", "bn", "de", "en", "es", "fa", "fr", "he", "hi", "id", "it", "ja", "ko", "mr", "nl", "pl", "ps", "pt", "ru", "sv",
    "sw", "ta", "tr", "uk", "ur", "vi", "zh",
)
# fmt: on

_ENTAILMENT = re.compile("entail(s|ed|ment)?", re.IGNORECASE)


@dataclass
class NliConfig(TransformerConfig):
    """An NLI judge.

    Attributes:
        max_length: tokens a pair is cut to, by cutting the premise; null is what the model was made for.
        entailment_label: the class that means entailment, by its name or number; null finds it by its name.
        threshold: p_yes from which on the label is 1; null takes the most likely class.
        languages: what the model was trained for (primary BCP 47 tags), null for any; the default is the default model's
            27 languages, so that it has to be given with another model.
    """

    backend: str = "nli"
    model: str = MODEL
    entailment_label: str | None = None
    threshold: float | None = None
    languages: list[str] | None = field(default_factory=lambda: list(LANGUAGES))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise ConfigError(f"judge.entails.threshold={self.threshold}: a probability above 0, at most 1, or null")
        if self.max_length is not None and self.max_length < 8:
            raise ConfigError(f"judge.entails.max_length={self.max_length}: must hold a premise and a hypothesis")
        if self.model != MODEL and self.languages == list(LANGUAGES):
            raise ConfigError(
                f"judge.entails.languages: say which languages {self.model} is for, as in judge.entails.languages=[en], "
                "or null for any; rows in others are marked"
            )

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "NliJudge":
        return NliJudge(self, storage)

    def preflight(self, storage: Storage | None = None) -> None:
        super().preflight(storage)
        settings = models.read_config(self.model, self.revision, storage)
        kinds = settings.get("architectures") or []
        if kinds and not any(kind.endswith("ForSequenceClassification") for kind in kinds):
            raise PreflightError(f"judge.entails.model={self.model}: is a {kinds[0]}, no sequence-classification model")
        entailment_class(settings, self.entailment_label, self.model)

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the judge's answers: model content and all that decides a label; not batch sizes or devices."""
        return fingerprint(
            {
                "backend": "nli",
                "model": models.fingerprint(self.model, self.revision, storage),
                "dtype": self.dtype,
                "max_length": self.max_length,
                "entailment_label": self.entailment_label,
                "threshold": self.threshold,
            }
        )


class NliJudge(TransformerJudge):
    """Where a pair is too long, the end of its premise is cut off and the verdict marked; the hypothesis never is. A pair
    whose hypothesis leaves no room for a premise fails as `hypothesis_too_long`."""

    def __init__(self, config: NliConfig, storage: Storage | None = None) -> None:
        super().__init__(config, storage)
        settings = models.read_config(config.model, config.revision, storage)
        self._yes = entailment_class(settings, config.entailment_label, config.model)
        self._threshold = config.threshold
        self._limit = self._find_limit(config)

    def _load(self, folder: str, **options: Any) -> Any:
        from transformers import AutoModelForSequenceClassification

        model, found = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True, **options)
        if missing := sorted(found["missing_keys"]):
            raise PreflightError(
                f"judge.entails.model={folder}: its weights lack {', '.join(missing[:3])}: it was never trained to classify"
            )
        return model

    def _encode(self, inputs: Sequence[dict[str, Any]]) -> list[Encoded | AskFailed]:
        premises, hypotheses = ([pair[key] for pair in inputs] for key in ("premise", "hypothesis"))
        encoded = self._tokenizer(premises, hypotheses, truncation=False, verbose=False)
        rows = [{key: values[i] for key, values in encoded.items()} for i in range(len(inputs))]
        return [self._fit(row, pair) for row, pair in zip(rows, inputs, strict=True)]

    def _step(self, rows: list[dict[str, list[int]]]) -> list[tuple[int, float]]:
        padded = self._tokenizer.pad(rows, return_tensors="pt").to(self._device)
        with self._torch.inference_mode():
            logits = self._model(**padded).logits.float()
        scores = self._torch.softmax(logits, dim=-1)[:, self._yes]
        labels = logits.argmax(dim=-1) == self._yes if self._threshold is None else scores >= self._threshold
        return list(zip(labels.int().tolist(), scores.tolist(), strict=True))

    def _fit(self, row: dict[str, list[int]], pair: Mapping[str, str]) -> Encoded | AskFailed:
        limit = self._limit
        if limit is None or len(row["input_ids"]) <= limit:
            return row, False
        alone = len(self._tokenizer("", pair["hypothesis"], verbose=False).input_ids)
        if alone >= limit:
            return AskFailed(
                "hypothesis_too_long",
                f"the hypothesis alone takes {alone} tokens, and the judge reads {limit}: no room is left for a premise; "
                "take a judge that reads more",
            )
        cut = self._tokenizer(
            pair["premise"], pair["hypothesis"], truncation="only_first", max_length=limit, verbose=False
        )
        return dict(cut), True


def entailment_class(settings: Mapping[str, Any], wanted: str | None, model: str) -> int:
    """The number of the class that means entailment.

    Args:
        settings: the model's config.json (`id2label`, `label2id`).
        wanted: its name or number, where the config does not tell.

    Raises:
        PreflightError: names the classes there are, and what to set.
    """
    # Transformers leaves out the names of two classes that have none.
    names = {int(key): str(name) for key, name in (settings.get("id2label") or {0: "LABEL_0", 1: "LABEL_1"}).items()}
    told = f"judge.entails.model={model}: its classes are {', '.join(f'{i}={names[i]}' for i in sorted(names))}"
    if len(names) < 2:
        raise PreflightError(f"{told}: a judge needs one for entailment and another")
    if wanted is not None:
        found = [i for i, name in names.items() if name.casefold() == wanted.casefold() or str(i) == wanted]
        if len(found) != 1:
            raise PreflightError(f"{told}: judge.entails.entailment_label={wanted} is none of them")
        return found[0]
    ask = "; look up in its card which one means entailment, and set judge.entails.entailment_label to its number"
    found = [i for i, name in names.items() if _ENTAILMENT.fullmatch(name.strip())]
    if len(found) != 1:
        raise PreflightError(f"{told}, {'several of which say' if found else 'none of which says'} entailment{ask}")
    other = {str(name): int(i) for name, i in (settings.get("label2id") or {}).items()}
    if other.get(names[found[0]], found[0]) != found[0]:
        raise PreflightError(f"{told} by id2label, but its label2id says {other}{ask}")
    return found[0]
