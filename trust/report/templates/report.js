"use strict";
// Shows the rows that the page carries. Whatever a model wrote goes in as text, never as markup.
(() => {
  const rows = JSON.parse(document.getElementById("rows").textContent);
  const form = document.getElementById("filter");
  const list = document.getElementById("list");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const STEP = 50;
  let chosen = [];
  let shown = 0;

  const make = (tag, cls, text) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (text !== undefined && text !== null) node.textContent = text;
    return node;
  };
  // Text of any language: its own direction, its own fonts.
  const prose = (tag, cls, text, language) => {
    const node = make(tag, cls, text);
    node.dir = "auto";
    if (language && language !== "und") node.lang = language;
    return node;
  };
  const words = (name) => String(name).replaceAll("_", " ");
  const percent = (value) => (value === null ? "n.a." : String(Math.round(value * 1000) / 1000));

  const heading = (body, text) => body.append(make("h4", "", text));

  const responseOf = (row) => row.response || "none";
  const isRight = (row) => row.answerable === null || row.response === null ? null
    : (row.response === "answered") === row.answerable && row.response !== "empty";

  function chips(row) {
    const found = [];
    if (row.status === "failed") found.push(["failed: " + words(row.reason), "bad"]);
    if (row.status === "na") found.push(["not applicable", "mid"]);
    if (row.response) {
      const right = isRight(row);
      const able = row.answerable === null ? "" : row.answerable ? ", answerable" : ", unanswerable";
      found.push([row.response + able, right === null ? "" : right ? "good" : "bad"]);
    }
    if (row.badness !== null && row.status !== "failed") found.push(["quality " + Math.round(100 * (1 - row.badness)), ""]);
    const spoken = { undetermined: "no language given", unsupported: `${row.language}: no rules for it` };
    found.push([spoken[row.language_rules] || row.language, row.language_rules === "supported" ? "" : "mid"]);
    return found.map(([text, cls]) => make("span", "chip " + cls, text));
  }

  function citation(cite, body) {
    const kind = cite.verdict || "not judged";
    const chance = cite.p_yes === null ? "" : " " + cite.p_yes.toFixed(2);
    const node = make("button", "cite " + (cite.verdict || ""), `[${cite.doc}] ${words(kind)}${chance}`);
    node.type = "button";
    node.dir = "ltr";
    node.addEventListener("click", () => {
      const doc = body.querySelector(`[data-doc="${Number(cite.doc)}"]`);
      if (!doc) return;
      body.querySelector(".docs").open = true;
      body.querySelectorAll(".target").forEach((other) => other.classList.remove("target"));
      doc.classList.add("target");
      doc.scrollIntoView({ block: "nearest" });
    });
    return node;
  }

  function answer(row, body) {
    if (row.output === null) return;
    heading(body, "Response" + (row.model ? ` of ${row.model}` : ""));
    if (!row.output.trim()) body.append(make("p", "faint output", "(empty)"));
    const judged = row.sentences.some((sentence) => sentence.recall !== null || sentence.citations.length);
    if (!judged) {
      if (row.output.trim()) body.append(prose("p", "output", row.output, row.language));
      return;
    }
    for (const sentence of row.sentences) {
      const tone = sentence.recall === null ? "" : sentence.recall ? " good" : " bad";
      const block = make("div", "sentence" + tone);
      // The text has no direction of its own here, so that it sets the one of the block, and with it the side of the bar.
      block.dir = "auto";
      block.append(make("p", "", sentence.text));
      if (row.language !== "und") block.lang = row.language;
      if (sentence.citations.length) {
        const cites = make("div", "cites");
        cites.append(...sentence.citations.map((cite) => citation(cite, body)));
        if (sentence.citations_left) cites.append(make("span", "faint", `and ${sentence.citations_left} more`));
        block.append(cites);
      } else if (sentence.recall !== null) {
        block.append(make("small", "", "cites nothing"));
      }
      body.append(block);
    }
    const raw = make("details", "more");
    raw.append(make("summary", "", "As written"), prose("p", "output", row.output, row.language));
    body.append(raw);
  }

  function items(row, body) {
    if (!row.items.length) return;
    heading(body, "Read as a list");
    const line = make("div", "cites");
    line.append(...row.items.map((item) => prose("span", "chip " + (item.correct ? "good" : "bad"), item.text, row.language)));
    body.append(line);
  }

  function gold(row, body) {
    heading(body, "Gold answers");
    if (!row.answers.length) body.append(make("p", "faint output", "none"));
    const all = make("ul", "plain");
    for (const entry of row.answers) {
      const line = make("li");
      line.append(prose("bdi", "", entry.text || "(empty)", row.language), " ");
      if (entry.aliases.length) line.append(make("small", "", "also "), prose("small", "", entry.aliases.join(" · "), row.language), " ");
      if (entry.supported !== null) line.append(make("span", "chip" + (entry.supported ? "" : " mid"), entry.supported ? "in the documents" : "in no document"), " ");
      if (entry.found !== null) line.append(make("span", "chip " + (entry.found ? "good" : entry.supported ? "bad" : ""), entry.found ? "given" : "not given"));
      all.append(line);
    }
    body.append(all);
  }

  function documents(row, body) {
    const cited = new Set(row.sentences.flatMap((sentence) => sentence.citations.map((cite) => cite.doc)));
    const total = row.docs.length + row.docs_left;
    const fold = make("details", "docs more");
    fold.append(make("summary", "", total === 1 ? "1 document" : `${total} documents`));
    for (const doc of row.docs) {
      const block = make("div", "doc");
      block.dataset.doc = doc.n;
      const head = make("div", "cites");
      head.append(prose("b", "", `[${doc.n}] ${doc.title}`, row.language));
      if (cited.has(doc.n)) head.append(make("span", "chip", "cited"));
      if (doc.holds.length) head.append(prose("span", "chip good", "holds " + doc.holds.join(", ")));
      else if (!doc.labelled) head.append(make("span", "chip mid", "not labelled"));
      block.append(head, prose("p", "", doc.text, row.language));
      fold.append(block);
    }
    if (row.docs_left) fold.append(make("p", "hint", `${row.docs_left} documents that are neither cited nor hold an answer are left out here.`));
    body.append(fold);
  }

  function numbers(row, body) {
    heading(body, "Why it scored what it scored");
    if (row.status !== "scored") {
      const what = row.status === "failed" ? "Failed" : "Not applicable";
      body.append(prose("p", "notice" + (row.status === "failed" ? " bad" : ""), `${what} (${words(row.reason)}): ${row.detail || "no more is known"}`));
    }
    const why = make("ul", "plain why");
    why.append(...row.why.map(([tone, text]) => prose("li", tone, text)));
    body.append(why);
    const all = make("dl", "values");
    for (const [name, value] of Object.entries(row.values)) {
      const pair = make("div");
      pair.append(make("dt", "", name), make("dd", "", percent(value)));
      all.append(pair);
    }
    body.append(all);
  }

  function fill(row, body) {
    answer(row, body);
    items(row, body);
    numbers(row, body);
    gold(row, body);
    documents(row, body);
    const kind = { all: "", failed: "shown as a failed row", worst: "shown as one of the worst", random: "shown by lot" }[row.why_shown];
    const facts = [row.id, row.dataset, row.task, row.prompt, row.draw ? `draw ${row.draw}` : "", row.finish === "length" ? "cut at the token limit" : "", row.tokens === null ? "" : `${row.tokens} tokens`, kind];
    body.append(make("p", "hint", facts.filter(Boolean).join(" · ")));
  }

  function card(row) {
    const fold = make("details", "row");
    const head = make("summary");
    head.append(prose("span", "q", row.question, row.language), ...chips(row));
    fold.append(head);
    fold.addEventListener("toggle", () => {
      if (fold.open && fold.childElementCount === 1) {
        const body = make("div", "body");
        fold.append(body);
        fill(row, body);
      }
    });
    return fold;
  }

  const haystack = (row) => {
    row.text ??= [row.id, row.question, row.output, row.reason, row.detail, ...row.answers.flatMap((entry) => [entry.text, ...entry.aliases]),
      ...row.docs.flatMap((doc) => [doc.title, doc.text])].filter(Boolean).join("\n").toLowerCase();
    return row.text;
  };

  const byId = (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.group - b.group || a.draw - b.draw);
  // Failed rows are the worst; rows without a quality come last.
  const fault = (row) => (row.status === "failed" ? 2 : row.badness ?? -1);
  const ORDERS = {
    worst: (a, b) => fault(b) - fault(a) || byId(a, b),
    best: (a, b) => (a.badness ?? 3) - (b.badness ?? 3) || byId(a, b),
    id: byId,
  };

  function show() {
    const next = chosen.slice(shown, shown + STEP);
    list.append(...next.map(card));
    shown += next.length;
    more.hidden = shown >= chosen.length;
  }

  function choose() {
    const data = new FormData(form);
    const text = String(data.get("text")).trim().toLowerCase();
    const same = (name, value) => !data.get(name) || data.get(name) === String(value);
    chosen = rows.filter((row) => same("group", row.group) && same("task", row.task) && same("language", row.language)
      && same("status", row.status) && same("response", responseOf(row)) && (!text || haystack(row).includes(text)));
    chosen.sort(ORDERS[data.get("order")]);
    list.replaceChildren();
    shown = 0;
    show();
    count.textContent = chosen.length === rows.length ? `${rows.length} rows` : `${chosen.length} of ${rows.length} rows`;
  }

  function offer(name, value) {
    const select = form.elements[name];
    const known = [...new Set(rows.map(value))].sort();
    for (const entry of known) {
      const option = make("option", "", entry === "na" ? "not applicable" : entry);
      option.value = entry;
      select.append(option);
    }
    if (known.length < 2) select.parentElement.hidden = true;
  }

  if (form.elements.group.options.length < 3) form.elements.group.parentElement.hidden = true;
  offer("task", (row) => row.task);
  offer("language", (row) => row.language);
  offer("status", (row) => row.status);
  offer("response", responseOf);
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", show);
  form.hidden = false;
  choose();
  if (rows.length === 1) list.firstElementChild.open = true;
})();
