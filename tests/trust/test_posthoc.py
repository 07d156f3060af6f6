"""What is cited, which document is chosen, and where the citation goes."""

import asyncio
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trust.ask import Embedding, Verdict
from trust.compat import choices
from trust.errors import ConfigError, RowError
from trust.metrics import citations
from trust.metrics.response import Rules, read
from trust.posthoc import Choice, CiteOptions, Citer, documents
from trust.text.citations import DEFAULT_STYLES, detach
from trust.text.refusals import Detector
from trust.text.sentences import split

DOCS = [
    {"title": "Lyon", "text": "Lyon lies on the Rhone", "answers_found": None},
    {"title": "Paris", "text": "Paris is the capital of France", "answers_found": None},
    {"title": "", "text": "Oslo is in Norway", "answers_found": None},
]
REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."


class FakeAsk:
    """Embeds a text as its words; entails by the share of the hypothesis' words. Keeps what it was asked."""

    def __init__(self, verdicts: Mapping[str, Verdict] | None = None) -> None:
        self.verdicts = verdicts
        self.asked: list[Any] = []

    async def embed(self, text: str) -> Embedding:
        self.asked.append(text)
        vector = np.zeros(4096, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 4096] += 1
        return Embedding(vector / max(float(np.linalg.norm(vector)), 1e-9))

    async def entails(self, premise: str, hypothesis: str, **where: Any) -> Verdict:
        self.asked.append((premise, hypothesis, where))
        if self.verdicts is not None:
            return next(verdict for title, verdict in self.verdicts.items() if f"Title: {title}\n" in premise)
        wanted = set(hypothesis.lower().strip(".").split())
        share = len(wanted & set(premise.lower().replace("\n", " ").split())) / len(wanted)
        return Verdict(int(share > 0.5), share)


def cite(
    output: str | None, compat: str = "strict", ask: FakeAsk | None = None, by: str = "embedding", **changes: Any
) -> tuple[str, list[Choice]]:
    row = {"question": "Which city?", "language": "en", "task": "em", "answers": [], "docs": DOCS, "output": output}
    options = {key: changes.pop(key) for key in ("docs_used", "min_score", "existing") if key in changes}
    if "docs_used" in options:
        options["docs"] = options.pop("docs_used")
    citer = Citer(CiteOptions(by, "posthoc", **options), compat)
    return asyncio.run(citer.cite(row | changes, ask or FakeAsk()))  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["embedding", "entailment"])
def test_each_sentence_cites_its_best_document_before_its_closing_mark(by: str) -> None:
    output, chosen = cite("Paris is the capital. Lyon lies on the Rhone!", by=by)
    assert output == "Paris is the capital [2]. Lyon lies on the Rhone [1]!"
    assert [(choice.sentence, choice.text, choice.doc) for choice in chosen] == [
        (0, "Paris is the capital.", 2),
        (1, "Lyon lies on the Rhone!", 1),
    ]
    assert [len(choice.scores) for choice in chosen] == [3, 3]
    assert all(choice.scores[choice.doc - 1] == max(choice.scores) for choice in chosen)


def test_what_a_judge_is_asked_is_what_the_citation_metric_asks() -> None:
    ask = FakeAsk()
    cite("Paris is the capital.", by="entailment", ask=ask)
    assert ask.asked[1] == (
        "Title: Paris\nParis is the capital of France",
        "Paris is the capital.",
        {"role": "post_hoc", "sentence": 0, "doc": 2},
    )
    assert ask.asked[2][0] == "Oslo is in Norway", "without a title there is none"


def test_a_document_is_embedded_with_its_title() -> None:
    ask = FakeAsk()
    cite("Paris is the capital.", ask=ask)
    assert ask.asked == ["Paris is the capital.", "Lyon. Lyon lies on the Rhone", ask.asked[2], "Oslo is in Norway"]


@pytest.mark.usefixtures("nltk_data")
def test_a_document_without_a_title_has_an_empty_one_upstream() -> None:
    ask = FakeAsk()
    cite("Paris is the capital.", "upstream", ask=ask)
    assert ask.asked[3] == ". Oslo is in Norway"


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Paris", "Paris [2]"),
        ("Is it Paris?!", "Is it Paris [2]?!"),
        ("It is Paris …", "It is Paris [2] …"),
        ('He said "Paris."', 'He said "Paris." [2]'),
        ("**Paris.**", "**Paris [2].**"),
        ("- Paris is big.\n- Lyon lies", "- Paris is big [2].\n- Lyon lies [1]"),
        ("# Cities\n\nParis is big.", "# Cities\n\nParis is big [2]."),
        ("These are they:\n1. Paris is big.", "These are they:\n1. Paris is big [2]."),
        ("Paris is in the U.S. of Texas.", "Paris is in the U.S. of Texas [2]."),
        ("", ""),
    ],
)
def test_nothing_of_the_text_but_the_citation_changes(text: str, cited: str) -> None:
    output, _ = cite(text)
    assert output == cited
    assert detach(output).text == text


def test_scripts_without_spaces_get_none_before_the_citation() -> None:
    docs = [{"title": "東京", "text": "東京は日本の首都です", "answers_found": None}]
    output, _ = cite("首都は東京です。人口は多い。", language="ja", docs=docs)
    assert output == "首都は東京です[1]。人口は多い[1]。"


def test_list_items_part_at_commas_and_are_compared_with_the_question_before_them() -> None:
    output, chosen = cite("Lyon, Paris.", task="em5")
    assert output == "Lyon [1], Paris [2]."
    assert [choice.text for choice in chosen] == ["Which city? Lyon", "Which city? Paris."]


@pytest.mark.parametrize("output", [REFUSAL, REFUSAL + " [2]", "The documents do not contain the answer.", "", "  "])
def test_refusals_and_empty_responses_stay_as_they_are(output: str) -> None:
    ask = FakeAsk()
    assert cite(output, ask=ask) == (output, [])
    assert not ask.asked


def test_a_remark_that_something_cannot_be_answered_gets_no_citation() -> None:
    remark = "The documents do not say how many people live there."
    output, _ = cite(f"Paris is the capital. Lyon lies on the Rhone. {remark}")
    assert output == f"Paris is the capital [2]. Lyon lies on the Rhone [1]. {remark}"


def test_a_sentence_below_the_least_score_gets_no_citation() -> None:
    output, chosen = cite("Paris is the capital of France. Bananas are yellow.", min_score=0.6)
    assert output == "Paris is the capital of France [2]. Bananas are yellow."
    assert [choice.doc for choice in chosen] == [2, None]
    assert max(chosen[1].scores) < 0.6 <= chosen[0].scores[1]


def test_of_equal_documents_the_first_is_cited_and_only_those_asked_for_are_looked_at() -> None:
    assert cite("Paris.", docs=[DOCS[1], DOCS[1]])[0] == "Paris [1]."
    output, (choice,) = cite("Paris.", docs_used=1)
    assert output == "Paris [1]."
    assert len(choice.scores) == 1


def test_a_document_without_text_is_never_chosen_and_without_documents_nothing_is() -> None:
    output, (choice,) = cite("Paris.", docs=[{"title": " ", "text": "", "answers_found": None}, DOCS[0]])
    assert output == "Paris [2]."
    assert choice.scores[0] is None
    assert cite("Paris.", docs=[]) == ("Paris.", [])


class TestExisting:
    TEXT = "Paris is the capital [7]. Lyon lies on the Rhone."

    @pytest.mark.parametrize(
        ("compat", "existing", "cited"),
        [
            ("strict", None, "Paris is the capital [2]. Lyon lies on the Rhone [1]."),
            ("strict", "kept", "Paris is the capital [7]. Lyon lies on the Rhone [1]."),
            ("upstream", None, "Paris is the capital [7]. [1] Lyon lies on the Rhone."),
            ("upstream", "replaced", "[2] Paris is the capital. [1] Lyon lies on the Rhone."),
        ],
    )
    def test_citations_that_are_there(self, nltk_data: Path, compat: str, existing: str | None, cited: str) -> None:
        assert cite(self.TEXT, compat, existing=existing)[0] == cited

    def test_an_apology_before_a_cited_answer_stays_an_answer(self) -> None:
        text = "I could not find an answer in the documents. However, Paris is the capital of France [1]."
        assert cite(text)[0] == text.replace("[1]", "[2]")


@pytest.mark.usefixtures("nltk_data")
class TestUpstream:
    def test_citations_open_sentences_and_lines_are_lost(self) -> None:
        output, _ = cite("Paris is the capital.\nLyon lies on the Rhone.", "upstream")
        assert output == "[2] Paris is the capital. [1] Lyon lies on the Rhone."

    def test_list_items(self) -> None:
        """The question is put before an item and taken away again, and a blank of it stays."""
        output, chosen = cite("Lyon, Paris.", "upstream", task="em5")
        assert output == "[1]  Lyon, [2]  Paris"
        assert [choice.text for choice in chosen] == ["Which city? Lyon", "Which city? Paris"]

    def test_refusals_are_cited(self) -> None:
        assert cite(REFUSAL, "upstream")[0].startswith("[")

    def test_the_judges_most_certain_answer_is_taken_for_entailment(self) -> None:
        """The published score is the log-probability of whatever the judge wrote: a sure "no" beats an unsure "yes"."""
        verdicts = {"Lyon": Verdict(0, 0.01), "Paris": Verdict(1, 0.9), "": Verdict(1, 0.6)}
        assert cite("It is so.", "upstream", FakeAsk(verdicts), "entailment")[0] == "[1] It is so."
        verdicts[""] = Verdict(0, 0.1)
        docs = [doc | {"title": doc["title"] or "Oslo"} for doc in DOCS]
        verdicts["Oslo"] = verdicts.pop("")
        assert cite("It is so.", "strict", FakeAsk(verdicts), "entailment", docs=docs)[0] == "It is so [2]."


@pytest.mark.parametrize("name", ["asqa", "qampari", "eli5"])
def test_cited_responses_are_read_back_as_they_were_cited(shared: Path, name: str) -> None:
    """On real outputs: the citation metric finds the sentences that were compared, each with the document chosen."""
    items = json.loads((shared / "data" / "trust_golden" / name / "input.json").read_text())
    rules = Rules(choices("strict"), Detector(), DEFAULT_STYLES)
    seen = 0
    for item in items["data"] if isinstance(items, dict) else items:
        row = {
            "question": item["question"],
            "language": "en",
            "task": {"asqa": "em", "qampari": "em5", "eli5": "cm"}[name],
            "answers": [],
            "docs": [doc | {"answers_found": None} for doc in item["docs"]],
            "output": item["output"],
        }
        citer = Citer(CiteOptions("embedding", "p"), "strict")
        output, chosen = asyncio.run(citer.cite(row, FakeAsk()))  # type: ignore[arg-type]
        if not chosen:
            continue
        assert detach(output).text == detach(item["output"]).text
        found = [
            statement for statement in citations.read(read(row | {"output": output}, rules), rules) if statement.needs
        ]
        assert [(s.hypothesis, s.numbers) for s in found] == [(c.text, (c.doc,)) for c in chosen]
        seen += len(chosen)
    assert seen > 60


def test_a_sentence_knows_where_it_begins() -> None:
    text = "  One is here [1]. Two [2]\n- Three.\n[3] Four. Five."
    for sentence in split(text, "en"):
        assert text[sentence.start :].startswith(sentence.text)


def test_documents_are_those_shown_and_of_a_closed_book_response_those_of_its_sample() -> None:
    assert documents({"docs": DOCS[:1]}, DOCS, 2) == DOCS[:1]
    assert documents({"docs": []}, DOCS, 2) == DOCS[:2]
    assert documents({"docs": []}, [], 2) == []
    with pytest.raises(RowError, match="sample is not in the run"):
        documents({"docs": []}, None, 2)


def test_a_response_that_cannot_be_read_fails() -> None:
    with pytest.raises(RowError, match="no output"):
        cite(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "embeding"}, "did you mean embedding"),
        ({"existing": "removed"}, "cite.existing=removed"),
        ({"name": " "}, "cite.name is empty"),
        ({"docs": 0}, "cite.docs=0"),
        ({"min_score": -0.1, "by": "entailment"}, "between 0 and 1"),
        ({"min_score": 1.5}, "between -1 and 1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CiteOptions(**({"by": "embedding", "name": "p"} | options))
