"""Tiny NLI models with random weights and a tokenizer that covers every text. What they say means nothing; that a judge
says the same as its model can be tested."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

LABELS = ("entailment", "neutral", "contradiction")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
READS = 64  # tokens

_TEXTS = [
    "The river flows out of the lake.",
    "Paris is the capital of France.",
    "東京は日本の首都です。",
    "القاهرة عاصمة مصر",
]
_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


def write(
    folder: Path, kind: str = "bert", labels: Sequence[str] = LABELS, seed: int = 0, states_limit: bool = True
) -> Path:
    """A model of `kind` (bert, roberta, deberta-v2) in `folder`.

    Args:
        labels: names of the classes, in order.
        states_limit: whether the tokenizer says how many tokens the model reads.
    """
    tokenizer = _tokenizer(kind, states_limit)
    torch.manual_seed(seed)
    # Weights far apart, so that scores are too.
    common = _SMALL | {"vocab_size": len(tokenizer), "pad_token_id": 0, "initializer_range": 0.6}
    common |= {"id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}
    if kind == "bert":
        model = BertForSequenceClassification(BertConfig(max_position_embeddings=READS, **common))
    elif kind == "roberta":
        model = RobertaForSequenceClassification(RobertaConfig(max_position_embeddings=READS + 1, **common))
    else:
        config = DebertaV2Config(
            max_position_embeddings=READS,
            relative_attention=True,
            position_buckets=16,
            pos_att_type=["p2c", "c2p"],
            share_att_key=True,
            norm_rel_ebd="layer_norm",
            position_biased_input=False,
            type_vocab_size=0,
            **common,
        )
        model = DebertaV2ForSequenceClassification(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rename(folder: Path, **settings: object) -> Path:
    """Changes keys of the model's config.json; null removes one."""
    path = folder / "config.json"
    values = json.loads(path.read_text()) | settings
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
    return folder


def _tokenizer(kind: str, states_limit: bool) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_TEXTS, trainer)
    second = 1 if kind == "bert" else 0
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair=f"[CLS] $A [SEP] $B:{second} [SEP]:{second}",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if kind == "bert" else [])
    marks = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    limit = {"model_max_length": READS} if states_limit else {}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=names, **marks, **limit)
