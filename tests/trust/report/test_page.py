"""The page as a whole: what it says, that nothing in it is loaded, and that no model's text becomes markup."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.trust.report.helpers import embedded, response, unanswerable, write_run
from trust.errors import PreflightError
from trust.report import write_report
from trust.runs import Run
from trust.storage import Storage

REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."
HOSTILE = [
    "<script>document.title = 'taken'</script>",
    "</script><script>document.title = 'taken'</script><!--",
    "<img src=x onerror=\"document.title='taken'\">",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt; \u2028 \u0000".replace("\u0000", ""),
    "Donaudampfschifffahrtsgesellschaft" * 60,
    "نهر أنغارا يخرج من بحيرة بايكال [1].",
    "Angara " + "".join(f"[{n}]" for n in range(200)) + ".",
]


def mixed() -> list[dict[str, Any]]:
    return [
        response(1, "The Angara flows out of Lake Baikal [1]."),
        response(2, REFUSAL),
        unanswerable(3, REFUSAL, language="de"),
        unanswerable(4, "The Murray [2][9].", language="de"),
        response(5, ""),
        response(6, None),
    ]


def page_of(run: Run, **options: Any) -> str:
    path = write_report(run, **options)
    assert path == run.path("report.html")
    return run.storage.read_bytes(path).decode()


def text_of(page: str) -> str:
    body = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_the_header_says_what_was_measured(tmp_path: Path) -> None:
    text = text_of(page_of(write_run(tmp_path, mixed(), name="first")))
    for words in (
        "Trust report first",
        "These numbers rest on word overlap, not on a trained judge",
        "lexical (word recall >= 0.8",
        "strict: each rule",
        "2026-01-02 03:04:05 UTC",
        "ray 2.56.1",
        "too_long 1",
        "no_response 1",
        "All 6 rows are here.",
    ):
        assert words in text


def test_the_mode_is_named(tmp_path: Path, nltk_data: Path) -> None:
    assert "bug for bug" in text_of(page_of(write_run(tmp_path, mixed(), compat="upstream")))


def test_the_numbers_are_those_of_the_summary(tmp_path: Path) -> None:
    run = write_run(tmp_path, mixed())
    summary = json.loads(run.storage.read_bytes(run.path("summary.json")))
    page = page_of(run)
    assert f'<code>trust_score</code></th><td class="num"><b>{summary["trust_score"]:.2f}</b>' in re.sub(
        r"\n *", "", page
    )
    assert f">{summary['trust_score']:.1f}</text>" in page


def test_the_refusal_table_counts_rows(tmp_path: Path) -> None:
    text = text_of(page_of(write_run(tmp_path, mixed())))
    assert "hold an answer 1 1 1 hold none 1 1 0 all 2 2 1" in text
    assert "1 more failed or were not scored." in text


def test_languages_are_told_apart(tmp_path: Path) -> None:
    text = text_of(page_of(write_run(tmp_path, mixed())))
    assert re.search(r"By language .* de 2 .* en 3", text)


def test_one_language_needs_no_table(tmp_path: Path) -> None:
    assert "By language" not in text_of(page_of(write_run(tmp_path, [response(1, "Angara [1].")])))


def test_own_columns_are_slices_and_small_ones_are_marked(tmp_path: Path) -> None:
    made = [response(n, "The Angara flows out of Lake Baikal [1].", meta={"domain": "rivers"}) for n in range(40)]
    made += [response(40 + n, "The Murray does [2].", meta={"domain": "lakes"} if n else {}) for n in range(13)]
    run = write_run(tmp_path, made, slices=["language", "domain"])
    page = page_of(run)
    text = text_of(page)
    assert "By language" not in text, "one language only"
    assert re.search(r"By domain domain rows .* lakes 12 few .* rivers 40 .* 100\.00 .* \(none\) 1 few", text)
    table = page.split("By <bdi>domain</bdi>")[1].split("</table>")[0]
    assert re.search(r"<small>\d+\.\d – \d+\.\d</small>", table.split("rivers")[1].split("</tr>")[0])
    assert "<small>" not in table.split("(none)")[1], "no interval below ten rows"
    assert page.count("By <bdi>") == 1
    assert 'class="scroll tall"' not in page


def test_columns_of_many_values_scroll(tmp_path: Path) -> None:
    made = [response(n, "Angara [1].", meta={"domain": f"d{n:02d}"}) for n in range(30)]
    assert 'class="scroll tall"' in page_of(write_run(tmp_path, made, slices=["domain"]))


def test_what_is_not_given_is_said(tmp_path: Path) -> None:
    text = text_of(page_of(write_run(tmp_path, [response(n, "Angara [1].", task="none") for n in range(12)])))
    assert "Not given for demo ." in text
    assert "F1_GR: every question is answerable, or none is" in text
    assert "F1_AC: needs gold answers, and the data has none (task none)" in text


def test_two_metrics_count_a_response_once(tmp_path: Path) -> None:
    metrics = {"trust_score": {}, "no_gold": {}}
    text = text_of(page_of(write_run(tmp_path, mixed(), metrics=metrics)))
    assert "hold an answer 1 1 1 hold none 1 1 0 all 2 2 1" in text
    bare = [
        row | {"docs": [doc | {"answers_found": None} for doc in row["docs"]], "question": "Lake Baikal?"}
        for row in mixed()
    ]
    text = text_of(page_of(write_run(tmp_path, bare, name="bare", metrics=metrics)))
    assert "hold an answer 2 2 1 all 2 2 1" in text.replace("hold none 0 0 0 ", "")


def test_several_data_sets_stand_side_by_side(tmp_path: Path) -> None:
    rows = mixed() + [
        row | {"sample_id": f"other:{n}", "dataset": "other", "task": "cm"} for n, row in enumerate(mixed())
    ]
    run = write_run(tmp_path, rows)
    assert run.storage.exists(run.path("summary.parquet"))
    page = page_of(run)
    assert "Side by side" in page
    assert page.count("<svg") == 2
    assert page.count('<section id="set-') == 2
    text = text_of(page)
    assert "calib_str_em_f1" in text
    assert "calib_claims_nli_f1" in text
    assert {row["group"] for row in embedded(page)} == {0, 1}


def test_null_numbers_are_not_applicable(tmp_path: Path) -> None:
    text = text_of(page_of(write_run(tmp_path, [response(1, None), response(2, None)])))
    assert "n.a." in text
    assert not re.search(r"\bnan\b|\bNone\b|\bnull\b", text.split("Versions and settings")[0])


def test_withheld_rates_say_why(tmp_path: Path) -> None:
    text = text_of(page_of(write_run(tmp_path, mixed(), max_failed=0.01)))
    assert "Rates of demo are withheld. 1 of 6 rows failed, more than max_failed=0.01." in text


def test_nothing_is_loaded(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path, mixed()))
    for load in ("http://", "https://", "src=", "@import", "url(", "<link", "<base", "<iframe"):
        assert load not in page.replace("url(#", ""), load
    assert "default-src 'none'" in page


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    rows = [
        response(n, text, question=text, answers=[[text]], dataset=text[:80], model=text[:40], meta={"own": text})
        for n, text in enumerate(HOSTILE)
    ]
    rows += [row | {"sample_id": f"{row['sample_id']}x", "meta": {}} for row in rows]
    page = page_of(write_run(tmp_path, rows, slices=["own"]))
    assert page.count("<script") == page.count("</script") == 2
    assert "<img" not in page
    assert sorted(row["output"] for row in embedded(page)) == sorted(2 * HOSTILE)
    assert "49" not in [row["question"] for row in embedded(page)]


def test_above_the_cap_a_stated_sample_is_shown(tmp_path: Path) -> None:
    rows = [response(n, None if n < 2 else "The Murray [2].") for n in range(60)]
    run = write_run(tmp_path, rows)
    first = page_of(run, max_rows=20)
    assert "20 of 60 rows are here: all 2 failed rows, the 9 with the worst scores, 9 drawn by lot" in text_of(first)
    assert len(embedded(first)) == 20
    assert page_of(run, max_rows=20) == first


def test_a_page_that_would_grow_too_large_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path, [response(n, "The Angara [1]. " * 50) for n in range(20)])
    page = page_of(run, max_bytes=20_000)
    shown = len(embedded(page))
    assert 0 < shown < 20
    assert f"{20 - shown} more were chosen, but would make the page too large." in text_of(page)


def test_a_run_without_an_evaluation_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"run jobs\.evaluate first"):
        write_report(Run(Storage(), str(tmp_path), "r"))


@pytest.fixture(scope="session")
def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not found:
        pytest.skip("no chromium or google-chrome is installed, so no page can be opened")
    return found


def opened(browser: str, page: Path, profile: Path) -> tuple[str, list[str]]:
    """The page's DOM after its script ran, and what it wrote to the console."""
    command = [
        browser,
        "--no-sandbox",
        "--disable-gpu",
        "--headless",
        "--enable-logging=stderr",
        "--disable-dev-shm-usage",
    ]
    command += [f"--user-data-dir={profile}", "--virtual-time-budget=5000", "--dump-dom", f"file://{page}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_a_browser_shows_the_rows_without_a_complaint(browser: str, tmp_path: Path) -> None:
    write_report(run := write_run(tmp_path / "runs", mixed()))
    dom, console = opened(browser, Path(run.path("report.html")), tmp_path / "profile")
    assert console == []
    assert dom.count('<details class="row"') == 6
    assert ">6 rows</p>" in dom
    assert '<option value="refused">refused</option>' in dom
    assert '<option value="de">de</option>' in dom
    first = dom.index('<details class="row"')
    assert "failed: too long" in dom[first : dom.index("</details>", first)]


@pytest.mark.parametrize("text", HOSTILE[:3])
def test_a_browser_runs_nothing_that_a_model_wrote(browser: str, tmp_path: Path, text: str) -> None:
    row = response(1, f"{text} [1].", question=text, answers=[[text]])
    row["docs"][0] |= {"title": text, "text": text}
    write_report(run := write_run(tmp_path / "runs", [row]))
    dom, console = opened(browser, Path(run.path("report.html")), tmp_path / "profile")
    assert console == []
    assert "<title>Trust report: hand</title>" in dom
    assert "<img" not in dom
    assert dom.count(html.escape(text, quote=False)) >= 4  # question, response, gold answer, document: the row is open


DRIVER = """
const form = document.getElementById("filter");
const seen = [];
const set = (name, value) => {
  form.elements[name].value = value;
  form.dispatchEvent(new Event("input"));
  seen.push([document.getElementById("count").textContent, document.querySelectorAll("#list > .row").length]);
  form.elements[name].value = name === "order" ? "worst" : "";
};
set("status", "failed");
set("response", "refused");
set("language", "de");
set("text", "LAKE BAIKAL [1]");
set("text", "nothing like this");
set("text", "");
document.title = JSON.stringify(seen);
"""


def test_filters_and_search_narrow_the_list(browser: str, tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "runs", mixed()))
    driven = tmp_path / "driven.html"
    policy = re.compile(r"script-src '[^']*'")
    driven.write_text(
        policy.sub("script-src 'unsafe-inline'", page).replace("</body>", f"<script>{DRIVER}</script></body>")
    )
    dom, console = opened(browser, driven, tmp_path / "profile")
    assert console == []
    assert json.loads(re.search(r"<title>(.*?)</title>", dom)[1]) == [
        ["1 of 6 rows", 1],
        ["2 of 6 rows", 2],
        ["2 of 6 rows", 2],
        ["1 of 6 rows", 1],
        ["0 of 6 rows", 0],
        ["6 rows", 6],
    ]


def test_the_console_is_heard(browser: str, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text("<script>document.no.such</script>")
    assert opened(browser, page, tmp_path / "profile")[1] != []
