// The review page: a document, its labels, and keys to decide about them. Decisions are sent one after the other; each
// has a key, so that one that is sent again counts once.
import { $, ask, call, drawn, make, nameParts, newKey, say } from "./common.js";
import { openFind, setUpFind } from "./find.js";

const RETRY = 2000; // milliseconds until an unanswered request is sent again
const state = { who: "", document: null, rows: [], marks: {}, at: 0, facts: null, waiting: 0, busy: false };
let chain = Promise.resolve();

// Send a request behind those that are waiting, again and again until the service answers.
function send(path, body) {
  state.waiting += 1;
  saved();
  const sent = chain.then(() => persist(path, { who: state.who, key: newKey(), ...body }));
  chain = sent.catch(() => {});
  return sent.finally(() => {
    state.waiting -= 1;
    saved();
  });
}

async function persist(path, body) {
  for (;;) {
    try {
      return await call("POST", path, body);
    } catch (error) {
      if (error.status !== 0 && error.status !== 503) throw error;
      say(`${error.message} Not saved yet; trying again.`, true);
      await new Promise((done) => setTimeout(done, RETRY));
      say("");
    }
  }
}

function saved() {
  document.body.dataset.waiting = String(state.waiting);
}

function failed(error) {
  if (error.status === 401) askWho(true);
  say(error.message, true);
}

async function open(more = {}) {
  const body = { who: state.who, order: $("order").value, language: $("language").value, ...more };
  try {
    const found = await persist("open", body);
    show(found);
  } catch (error) {
    failed(error);
  }
}

function show({ document: id, parts, suggestions, others, state: now }) {
  state.document = id;
  state.marks = now.marks;
  state.at = 0;
  state.rows = [...suggestions, ...others];
  $("desk").hidden = false;
  $("nothing").hidden = id !== null;
  $("document").hidden = $("labels").hidden = $("find").hidden = id === null;
  for (const button of ["next", "skip"]) $(button).disabled = id === null;
  $("why").hidden = true;
  say("");
  $("document-title").textContent = id === null ? "Document" : `Document ${id}${now.done_by ? `, done by ${now.done_by}` : ""}`;
  document.body.dataset.document = id ?? "";
  showText(parts);
  showLabels();
  $("text").scrollTop = 0;
  if (id !== null) focusRow(0);
  refresh();
}

function showText(parts) {
  $("text").replaceChildren(
    ...parts.flatMap(({ name, pieces }) => [
      ...(name ? [make("h3", { textContent: name })] : []),
      make("p", {}, ...pieces.map(([text, amount]) => (amount ? make("mark", { textContent: text, className: amount < 0 ? "against" : "" }) : text))),
    ]),
  );
}

const SIGNS = { accept: "✓", reject: "✗" };
const WORDS = { accept: "accepted", reject: "rejected" };

function showLabels() {
  $("labels").replaceChildren(...state.rows.map(row));
  $("none").hidden = state.rows.length > 0 || state.document === null;
}

function row(one, place) {
  const mark = state.marks[one.label];
  const percent = Math.round(100 * one.score);
  const isSure = one.score !== null && state.facts?.has_model; // without a model, scores compare names with the text
  const sure = !isSure ? "" : percent < 1 ? ", under 1 %" : `, ${percent} %`;
  const acts = [
    ["accept", "✓", "Accept"],
    ["reject", "✗", "Reject"],
  ].map(([action, sign, word]) => {
    const button = make("button", { type: "button", textContent: sign, tabIndex: -1, title: word });
    button.setAttribute("aria-label", `${word} ${one.name}`);
    button.setAttribute("aria-pressed", String(mark === action));
    button.addEventListener("click", () => decide(place, action));
    return button;
  });
  const why = make("button", { type: "button", textContent: "?", tabIndex: -1, title: "Why" });
  why.setAttribute("aria-label", `Why ${one.name}`);
  why.addEventListener("click", () => explain(place));
  const item = make("li", { className: mark ?? "", tabIndex: place === state.at ? 0 : -1 });
  item.dataset.label = one.label;
  item.setAttribute("aria-label", `${one.name}${one.place.length ? `, in ${one.place.join(", ")}` : ""}${sure}${mark ? `, ${WORDS[mark]}` : ""}`);
  const sign = make("span", { className: "sign", textContent: SIGNS[mark] ?? "" });
  sign.setAttribute("aria-hidden", "true");
  item.append(sign, make("span", {}, ...nameParts(one), sure ? make("span", { className: "place", textContent: sure.slice(2) }) : ""), make("span", { className: "acts" }, ...acts, why));
  item.addEventListener("focus", () => (state.at = place));
  return item;
}

function focusRow(place) {
  const items = $("labels").children;
  if (!items.length) return void $("text").focus();
  state.at = Math.max(0, Math.min(items.length - 1, place));
  [...items].forEach((item, number) => (item.tabIndex = number === state.at ? 0 : -1));
  items[state.at].focus();
}

function decide(place, action) {
  const one = state.rows[place];
  if (!one || state.document === null) return;
  const id = state.document;
  const wanted = state.marks[one.label] === action ? "clear" : action;
  if (wanted === "clear") delete state.marks[one.label];
  else state.marks[one.label] = wanted;
  showLabels();
  focusRow(wanted === "clear" ? place : place + 1);
  say(`${one.name}: ${WORDS[wanted] ?? "no mark"}.`);
  send("decide", { document: id, action: wanted, label: one.label }).catch((error) => again(error, id));
}

// A refused decision: show what holds.
function again(error, id) {
  failed(error);
  if (state.document === id) open({ document: id });
}

function added(one) {
  const found = state.rows.findIndex((known) => known.label === one.label);
  if (found < 0) state.rows.push({ ...one, also: null, score: null });
  const place = found < 0 ? state.rows.length - 1 : found;
  if (state.marks[one.label] !== "accept") decide(place, "accept");
  focusRow(place);
}

async function next() {
  const id = state.document;
  if (id === null || state.busy) return;
  state.busy = true;
  try {
    await send("decide", { document: id, action: "done" });
    await open();
  } catch (error) {
    failed(error);
  } finally {
    state.busy = false;
  }
}

async function skip() {
  if (state.document === null || state.busy) return;
  state.busy = true;
  await chain;
  await open({ skip: state.document });
  state.busy = false;
}

async function undo() {
  if (state.busy) return;
  state.busy = true;
  try {
    const { document: id, action, label } = await send("undo", {});
    if (id === null) say("There is nothing to undo.");
    else {
      await open({ document: id });
      const one = state.rows.find((known) => known.label === label);
      say(action === "done" ? `Document ${id} is open again.` : `Taken back: ${one?.name ?? label}.`);
    }
  } catch (error) {
    failed(error);
  } finally {
    state.busy = false;
  }
}

async function explain(place) {
  const one = state.rows[place];
  if (!one) return;
  try {
    const told = await call("GET", `why?document=${encodeURIComponent(state.document)}&label=${encodeURIComponent(one.label)}`);
    $("why-title").textContent = `Why ${one.name}`;
    $("sentences").replaceChildren(...told.sentences.map((sentence) => make("li", { textContent: sentence })));
    $("why").hidden = false;
    showText(told.parts);
    $("text").querySelector("mark")?.scrollIntoView({ block: "nearest" });
    say("");
  } catch (error) {
    failed(error);
  }
}

async function refresh() {
  try {
    state.facts = await call("GET", "facts");
  } catch (error) {
    return failed(error);
  }
  const { progress, people } = state.facts;
  $("bar").max = progress.documents || 1;
  $("bar").value = progress.done;
  $("count").textContent = `${progress.done.toLocaleString()} of ${progress.documents.toLocaleString()} done`;
  $("people").textContent = people.length > 1 ? `At work: ${people.join(", ")}` : "";
  for (const name of ["accepted", "rejected", "added", "unchanged"]) $(name).textContent = progress[name].toLocaleString();
  $("by-person").textContent = Object.entries(progress.by_person).map(([who, count]) => `${who} ${count}`).join(", ") || "-";
  curve(progress.agreement);
}

function curve(points) {
  const [left, right, top, bottom] = [26, 236, 6, 60];
  const x = (place) => left + ((right - left) * (place + 0.5)) / points.length;
  const y = (share) => bottom - (bottom - top) * share;
  const line = (name) => {
    const ends = points.length === 1 ? [`${left},${y(points[0][name])}`] : [];
    return drawn("polyline", { class: name, points: [...ends, ...points.map((one, place) => `${x(place)},${y(one[name])}`)].join(" ") });
  };
  const grid = [0, 0.5, 1].flatMap((share) => [
    drawn("line", { x1: left, x2: right, y1: y(share), y2: y(share) }),
    drawn("text", { x: 0, y: y(share) + 2 }, `${100 * share} %`),
  ]);
  $("curve").replaceChildren(...grid, ...(points.length ? [line("first"), line("found")] : []));
  const last = points.at(-1);
  $("curve-text").textContent = last
    ? `Agreement over time, oldest document first. Solid: the first suggestion was right (last: ${Math.round(100 * last.first)} %). Dashed: labels that were among the suggestions (last: ${Math.round(100 * last.found)} %).`
    : "Agreement with the suggestions is drawn when documents are done.";
}

async function download(format) {
  try {
    await chain;
    const answer = await ask("GET", `export?format=${format}`);
    const link = make("a", { href: URL.createObjectURL(await answer.blob()), download: `reviewed.${format === "annif" ? "tsv" : format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  } catch (error) {
    failed(error);
  }
}

const KEYS = { j: () => focusRow(state.at + 1), k: () => focusRow(state.at - 1), ArrowDown: () => focusRow(state.at + 1), ArrowUp: () => focusRow(state.at - 1), a: () => decide(state.at, "accept"), r: () => decide(state.at, "reject"), w: () => explain(state.at), "/": openFind, n: next, s: skip, u: undo };

document.addEventListener("keydown", (event) => {
  const inField = event.target.matches("input, select, textarea");
  if (inField || event.ctrlKey || event.metaKey || event.altKey || $("desk").hidden) return;
  const isArrow = event.key.startsWith("Arrow");
  if (isArrow ? !event.target.closest("#labels") : !$("keys").checked) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]; // also with Caps Lock
  if (!act || (event.repeat && !isArrow && event.key !== "j" && event.key !== "k")) return;
  event.preventDefault();
  act();
});

function askWho(needsToken) {
  $("start").hidden = false;
  $("access").hidden = !needsToken;
  (needsToken ? $("token") : $("who")).focus();
}

async function begin() {
  let facts;
  try {
    facts = state.facts = await call("GET", "facts");
  } catch (error) {
    $("who").value = state.who;
    if (error.status === 401) askWho(true);
    $("start").after($("status"));
    return say(error.message, true);
  }
  $("title").textContent = `Review ${facts.title}`;
  $("query-label").textContent = facts.new_labels ? "Find a label, or make one" : "Find a label";
  $("none").textContent = `Nothing is suggested. Find ${facts.new_labels ? "or make " : ""}a label below.`;
  $("order").value = sessionStorage.getItem("order") ?? facts.order;
  $("languages").hidden = facts.languages.length < 2;
  const chosen = sessionStorage.getItem("language") ?? facts.language;
  $("language").replaceChildren(...facts.languages.map((tag) => make("option", { value: tag, textContent: tag, selected: tag === chosen })));
  if (!state.who) return askWho(false);
  $("start").hidden = true;
  await open();
}

$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  state.who = $("who").value.trim();
  if (!state.who) return;
  localStorage.setItem("who", state.who);
  if ($("token").value) sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  begin();
});
$("next").addEventListener("click", next);
$("skip").addEventListener("click", skip);
$("undo").addEventListener("click", undo);
for (const button of document.querySelectorAll(".export")) button.addEventListener("click", () => download(button.dataset.format));
for (const name of ["order", "language"])
  $(name).addEventListener("change", () => {
    sessionStorage.setItem(name, $(name).value);
    if (name === "language" && state.document !== null) chain.then(() => open({ document: state.document }));
  });
function showKeys() {
  document.body.dataset.keys = $("keys").checked ? "on" : "off";
}
$("keys").checked = localStorage.getItem("keys") !== "off";
showKeys();
$("keys").addEventListener("change", () => {
  showKeys();
  localStorage.setItem("keys", document.body.dataset.keys);
});
addEventListener("beforeunload", (event) => {
  if (state.waiting) event.preventDefault();
});
setUpFind({ onAdd: added, onLeave: () => focusRow(state.at), getSettings: () => ({ language: $("language").value, newLabels: state.facts?.new_labels ?? false }) });
state.who = localStorage.getItem("who") ?? "";
saved();
begin();
