"""Refusals and answers in all NoMIRACL languages."""

import re

import pytest

from trust.text.languages import SUPPORTED
from trust.text.refusals import Detector, Finding, _data, _fold, _needed, _phrases
from trust.text.sentences import split

REFUSALS = {
    "en": ["I apologize, but I couldn't find an answer to your question in the search results.",
           "Sorry, I cannot answer this question.", "The documents do not contain the answer.",
           "I could not find an answer.", "I don't know.", "I don’t know", "I do not know.",
           "I'm sorry, but I couldn't find an answer.", "**I couldn't find an answer.**",
           "Unfortunately, none of the provided documents mention the population of X [1][2].",
           "The documents discuss oranges. However, they do not contain the answer to the question.",
           "I apologize, but the documents do not contain an answer to this.",
           "There is no information about this in the provided passages.", "N/A", "Answer: I don't know.",
           "No answer is present in the contexts.", "The answer is not present in the contexts.",
           "Based on the provided documents, I am unable to determine when he died.",
           "The provided context does not specify the date.", '"I could not find an answer."', "I cannot answer.",
           "It is not possible to answer this question from the given documents.", "I have no idea.",
           "The given documents [1][2][3] do not mention any of this.", "I'm afraid I can't help with that.",
           "Question cannot be answered from the provided documents.",
           "I could not find an answer to your question. The documents are about apples."],
    "ar": ["عذرًا، لا أستطيع الإجابة على هذا السؤال.", "لا تحتوي الوثائق على الإجابة.", "لا أعرف.",
           "لم أتمكن من العثور على إجابة لسؤالك."],
    "bn": ["দুঃখিত, আমি এই প্রশ্নের উত্তর দিতে পারছি না।", "নথিতে উত্তর নেই।", "আমি জানি না।"],
    "de": ["Entschuldigung, ich kann diese Frage nicht beantworten.", "Die Dokumente enthalten keine Antwort.",
           "Ich konnte keine Antwort auf Ihre Frage finden.", "Das weiß ich nicht."],
    "es": ["Lo siento, no puedo responder a esta pregunta.", "Los documentos no contienen la respuesta.",
           "No encontré una respuesta a su pregunta.", "No lo sé."],
    "fa": ["متأسفم، نمی‌توانم به این سؤال پاسخ دهم.", "پاسخی برای سوال شما پیدا نکردم.", "نمی‌دانم."],
    "fi": ["Anteeksi, en pysty vastaamaan tähän kysymykseen.", "Asiakirjat eivät sisällä vastausta.", "En tiedä."],
    "fr": ["Désolé, je ne peux pas répondre à cette question.", "Les documents ne contiennent pas la réponse.",
           "Je n'ai pas trouvé de réponse à votre question.", "Je ne sais pas."],
    "hi": ["क्षमा करें, मैं इस प्रश्न का उत्तर नहीं दे सकता।", "दस्तावेज़ों में उत्तर नहीं है।", "मुझे नहीं पता।"],
    "id": ["Maaf, saya tidak dapat menjawab pertanyaan ini.", "Dokumen tidak berisi jawabannya.", "Saya tidak tahu."],
    "ja": ["申し訳ありませんが、この質問にはお答えできません。", "文書には答えが含まれていません。", "わかりません。"],
    "ko": ["죄송합니다, 이 질문에 답할 수 없습니다.", "문서에 답이 포함되어 있지 않습니다.", "모르겠습니다."],
    "ru": ["Извините, я не могу ответить на этот вопрос.", "Документы не содержат ответа.", "Я не знаю.",
           "В предоставленных документах нет ответа на этот вопрос."],
    "sw": ["Samahani, siwezi kujibu swali hili.", "Hati hazina jibu.", "Sijui."],
    "te": ["క్షమించండి, నేను ఈ ప్రశ్నకు సమాధానం ఇవ్వలేను.", "పత్రాలలో సమాధానం లేదు.", "నాకు తెలియదు."],
    "th": ["ขออภัย ฉันไม่สามารถตอบคำถามนี้ได้", "เอกสารไม่มีคำตอบ", "ไม่ทราบ"],
    "yo": ["Má bínú, mi ò lè dáhùn ìbéèrè yìí.", "Àwọn ìwé náà kò ní ìdáhùn.", "Mi ò mọ̀."],
    "zh": ["抱歉，我无法回答这个问题。", "文档中没有提供答案。", "我找不到您问题的答案。", "我不知道。"],
}  # fmt: skip

ANSWERS = {
    "en": ["I", "find", "C", "but", "Finland", "No", "The answer is 42 [1].", "Not guilty", "Unknown Pleasures",
           "Scientists could not find an answer to X until 1905 [1].",
           "Researchers do not know the answer to this question [2].",
           "The question could not be answered until 1905 [1].", "The Constitution does not mention slavery [1].",
           "There is no evidence that he was there [1].", "The team was unable to answer the critics [1].",
           "The police found no information about the thief [2].", "The song is called I Don't Know [1].",
           'He said "I do not know the answer" in 1905 [1].', "The sources of the Nile were not found until 1858 [1].",
           "The results were not available until 1999 [2].", "There is no answer key in the game [1].",
           "You cannot answer a question with a question [1].", "Sorry is a song by Justin Bieber [1].",
           "It is not possible to travel faster than light [1]."],
    "ar": ["العاصمة هي القاهرة [1].", "لم يجد العلماء علاجا للمرض حتى عام 1905 [1]."],
    "bn": ["ঢাকা রাজধানী [1]।"],
    "de": ["Wissenschaftler konnten bis 1905 keine Antwort finden [1].", "Berlin [1]."],
    "es": ["Los científicos no encontraron una respuesta hasta 1905 [1].", "No hay lobos en Irlanda [2]."],
    "fa": ["تهران پایتخت است [1]."],
    "fi": ["Suomi ei ole kuningaskunta [1]."],
    "fr": ["Les scientifiques n'ont pas trouvé de réponse avant 1905 [1].", "Il ne peut pas voler [2]."],
    "hi": ["वैज्ञानिकों ने 1905 में खोज की [1]।"],
    "id": ["Ilmuwan tidak menemukan jawaban sampai 1905 [1]."],
    "ja": ["東京は首都です[1]。", "ペンギンは飛べません[1]。"],
    "ko": ["과학자들은 1905년까지 그 사실을 알지 못했다 [1]."],
    "ru": ["Учёные не могли найти ответ до 1905 года [1]."],
    "sw": ["Wanasayansi hawakupata jibu hadi 1905 [1]."],
    "te": ["హైదరాబాద్ రాజధాని [1]."],
    "th": ["กรุงเทพ [1]", "เพนกวินบินไม่ได้ [1]"],
    "yo": ["Abuja ni olú ìlú [1]."],
    "zh": ["北京是首都[1]。", "科学家直到1905年才找到答案[1]。", "企鹅不能飞[1]。"],
}  # fmt: skip

DETECTOR = Detector()


def _classify(text: str, language: str) -> Finding:
    return DETECTOR.classify(split(text, language), language)


def test_every_nomiracl_language_has_phrases_and_tests() -> None:
    assert set(_data()) == SUPPORTED == set(REFUSALS) == set(ANSWERS)


@pytest.mark.parametrize("language", REFUSALS)
@pytest.mark.parametrize("known", [True, False])
def test_refusals(language: str, known: bool) -> None:
    for text in REFUSALS[language]:
        finding = _classify(text, language if known else "und")
        assert (finding.response, finding.phrase is None) == ("refused", False), text


@pytest.mark.parametrize("language", ANSWERS)
@pytest.mark.parametrize("known", [True, False])
def test_answers(language: str, known: bool) -> None:
    for text in ANSWERS[language]:
        assert _classify(text, language if known else "und") == Finding("answered"), text


@pytest.mark.parametrize("text", REFUSALS["en"])
def test_english_refusals_count_in_every_language(text: str) -> None:
    assert _classify(text, "sw").response == "refused"


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("I apologize, but I couldn't find a specific answer; however, the film was released in 1994 [1].", "answered"),
        ("I could not find an answer. The film was released in 1994 [1].", "answered"),
        ("The film was released in 1994 [1]. I could not find an answer to the rest.", "answered"),
        ("I could not find an answer. It may have been 1994.", "refused"),
        ("One. Two. Three. The documents do not mention the rest.", "answered"),
        ("The documents [1][2] do not contain the answer, but they say it is red [3].", "answered"),
    ],
)
def test_an_apology_with_more(text: str, response: str) -> None:
    finding = _classify(text, "en")
    assert finding.response == response
    assert finding.phrase


def test_refusing_sentences_are_named() -> None:
    assert _classify("Fact [1]. I could not find an answer to the rest.", "en").refusing == {1}
    assert _classify("Sorry! I could not find an answer.", "en").refusing == {0, 1}
    assert _classify("Fact [1].", "en").refusing == frozenset()


@pytest.mark.parametrize("text", ["", " . ", "[1]", "\n-\n"])
def test_nothing_is_empty(text: str) -> None:
    assert _classify(text, "en") == Finding("empty")


def _examples(phrase: str) -> set[str]:
    """Texts that a listed phrase describes: each alternative of each group, one at a time."""
    parts = re.split(r"\(([^()]*)\)", re.sub(r"[\^$]", "", phrase).replace("*", " so and so "))
    groups = [part.split("|") if at % 2 else [part] for at, part in enumerate(parts)]
    made = set()
    for changed in range(len(groups)):
        for choice in groups[changed]:
            made.add("".join(choice if at == changed else group[0] for at, group in enumerate(groups)))
    return made


@pytest.mark.parametrize("language", sorted(_data()))
def test_what_a_phrase_matches_holds_one_of_the_words_that_it_is_first_looked_for_by(language: str) -> None:
    matched = 0
    for phrase, pattern, _, words in _phrases(language):
        for text in map(_fold, _examples(phrase)):
            if pattern.search(text):
                matched += 1
                assert any(word in text for word in words), (phrase, text)
    assert matched >= len(_phrases(language))


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        ("do not know", ("know",)),
        ("(i|we) (cannot|can not) answer*", ("answer",)),
        ("not (found|mentioned)$", ("found", "mentioned")),
        ("(the|this|) (text|page) is (|not )it", ("text", "page")),
        ("one|the other", ("",)),
        ("(a|)", ("",)),
    ],
)
def test_words_that_a_phrase_needs(phrase: str, words: tuple[str, ...]) -> None:
    assert _needed(phrase) == words
