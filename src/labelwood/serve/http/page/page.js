// The page of the service: suggestions while typing, explanations, teaching. Text from the service or the user is
// inserted as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const WAIT = 150; // milliseconds between the last key and the request
const GRACE = 5000; // milliseconds in which a taught example can be taken back
const LONG = 60000; // characters; browsers drop longer requests of a closed page, so these are sent at once
// `names` are those of labels that the list of known labels has shown.
// Ticks belong to `text`, the text they were made for. `pending` is an example that has not been sent yet.
const state = { language: "", names: new Map(), takes: "text", learns: false, shown: [], ticked: new Map(), text: "", taught: false, asked: 0, timer: 0, pending: null };

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

async function call(method, path, body, headers = {}) {
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method, headers, keepalive: document.visibilityState === "hidden" }; // outlives a closed page
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  const read = await answer.json().catch(() => ({ detail: answer.statusText }));
  if (answer.status === 401) $("access").hidden = false;
  if (!answer.ok) throw new Error(answer.status === 401 ? "This service requires a valid token; enter it below the text." : read.detail);
  return read;
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

// The input of a request from the text area: a text, or features in the form 12:0.5 7:1.
function input() {
  const text = $("input").value;
  if (state.takes === "text") return text.trim() ? { text } : null;
  const features = {};
  for (const pair of text.split(/\s+/).filter(Boolean)) {
    const [column, value = "1"] = pair.split(":");
    if (!/^\d+$/.test(column) || !Number.isFinite(Number(value))) throw new Error(`not a feature: ${pair}`);
    features[column] = Number(value);
  }
  return Object.keys(features).length ? { features } : null;
}

async function suggest(fresh = new Set()) {
  const number = ++state.asked;
  try {
    const given = input();
    const found = given ? (await call("POST", "suggest", { ...given, ...language(), k: Number($("k").value) })).suggestions : [];
    if (number !== state.asked) return; // the text has changed since the request
    state.shown = found;
    show(fresh);
    say("");
  } catch (error) {
    if (number === state.asked) say(error.message, true);
  }
}

const keyOf = (label) => `${typeof label}:${label}`;
const language = () => (state.language ? { language: state.language } : {});

function show(fresh = new Set()) {
  const suggested = new Set(state.shown.map((one) => keyOf(one.label)));
  const added = [...state.ticked.values()].filter((label) => !suggested.has(keyOf(label)));
  const rows = [...state.shown, ...added.map((label) => ({ label, name: state.names.get(label), score: null }))];
  $("found").replaceChildren(...rows.map((one, place) => row(one, place, fresh)));
  $("copy").disabled = !rows.length;
  allowTeaching();
}

function allowTeaching() {
  $("teach").disabled = !state.learns || !state.ticked.size || !$("input").value.trim();
}

function row({ label, name: concept, score }, place, fresh) {
  const key = keyOf(label);
  const box = make("input", { type: "checkbox", id: `label-${place}`, checked: state.ticked.has(key) });
  box.addEventListener("change", () => {
    if (box.checked) state.ticked.set(key, label);
    else state.ticked.delete(key);
    allowTeaching();
  });
  box.hidden = !state.learns;
  const name = make("label", { htmlFor: box.id, textContent: concept ?? String(label) });
  if (concept) name.append(make("span", { className: "uri", textContent: String(label) }));
  const item = make("li", {}, box, name);
  if (fresh.has(key)) item.className = "fresh";
  if (score !== null) {
    const why = make("button", { type: "button", textContent: "why" });
    why.setAttribute("aria-label", `Why ${concept ?? label}`);
    why.addEventListener("click", () => explain(label));
    const meter = make("meter", { min: 0, max: 1, value: score });
    meter.setAttribute("aria-hidden", "true");
    const number = make("span", { className: "score", textContent: score.toFixed(3) });
    item.append(make("span", { className: "tail" }, meter, number), why);
  }
  return item;
}

async function explain(label) {
  try {
    const place = state.shown.findIndex((one) => one.label === label);
    const told = await call("POST", "explain", { ...input(), ...language(), k: place + 1, n_features: 30 });
    const found = told.suggestions.find((one) => one.label === label);
    if (!found) return;
    const steps = found.paths.length ? found.paths.flatMap((path) => path.steps) : told.routes.flatMap((r) => r.steps);
    const amounts = new Map();
    for (const { contributions } of steps)
      for (const { name, feature, amount } of contributions)
        amounts.set(name ?? `#${feature}`, (amounts.get(name ?? `#${feature}`) ?? 0) + amount);
    showWhy((one) => told.names[one] ?? one, label, found, amounts);
    mark(amounts);
  } catch (error) {
    say(error.message, true);
  }
}

function showWhy(named, label, found, amounts) {
  $("why-title").textContent = `Why ${named(label)}`;
  const strongest = [...amounts].sort((one, other) => Math.abs(other[1]) - Math.abs(one[1])).slice(0, 12);
  const words = strongest.map(([name, amount]) => `${name} ${amount < 0 ? "−" : "+"}${Math.abs(amount).toFixed(2)}`);
  $("why-words").textContent = words.length ? `Words with the largest weight: ${words.join(", ")}` : "No word has a weight.";
  const lines = [];
  for (const path of found.paths)
    for (const step of path.steps) {
      const where = step.label === null ? `the group of labels below node ${step.child}` : `the label ${named(step.label)}`;
      const sure = step.probability === null ? "" : `, ${(100 * step.probability).toFixed(0)} % sure`;
      const rank = step.place === 1 ? "the best" : `number ${step.place}`;
      const whose = found.paths.length > 1 ? `Tree ${path.tree + 1} chose` : "The model chose";
      lines.push(`${whose} ${where}: ${rank} of ${step.n_children} choices${sure}.`);
    }
  for (const share of found.shares)
    lines.push(`${(100 * share.share).toFixed(1)} % of the similar training examples in tree ${share.route + 1} had this label.`);
  $("why-path").replaceChildren(...lines.map((line) => make("li", { textContent: line })));
  $("why").hidden = false;
  $("why-title").focus();
}

// Show a copy of the text with the words of the explanation marked.
function mark(amounts) {
  if (state.takes !== "text") return;
  const weigh = new Map();
  for (const [name, amount] of amounts)
    for (const word of name.toLowerCase().split(" ")) weigh.set(word, (weigh.get(word) ?? 0) + amount);
  const parts = $("input").value.split(/([\p{L}\p{N}_]+)/u).map((part) => {
    const amount = weigh.get(part.toLowerCase());
    if (!amount) return part;
    return make("mark", { textContent: part, className: amount < 0 ? "against" : "", title: amount.toFixed(3) });
  });
  $("marked").replaceChildren(...parts);
  $("marked").hidden = false;
}

// An edit keeps the document if most of the text stays; a pasted text is another document.
function isSameDocument(before, after) {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < least - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return 2 * (start + end) >= Math.max(before.length, after.length);
}

// Forget the ticks of the former document.
function followText() {
  const text = $("input").value;
  if (state.taught || !isSameDocument(state.text, text)) {
    state.ticked.clear();
    state.taught = false;
    show();
  }
  state.text = text;
}

function teach() {
  send();
  const labels = [...state.ticked.values()];
  try {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const key = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    state.pending = { example: { ...input(), labels }, key, timer: setTimeout(send, GRACE) };
    if ($("input").value.length > LONG) return void send();
  } catch (error) {
    say(error.message, true);
    return;
  }
  state.taught = true;
  $("undo").hidden = false;
  say(`Teaching ${labels.join(", ")} in ${GRACE / 1000} seconds.`);
}

// Send the pending example now.
async function send() {
  const pending = forget();
  if (!pending) return;
  try {
    const done = await call("POST", "learn", { examples: [pending.example] }, { "Idempotency-Key": pending.key });
    const isShown = input()?.text === pending.example.text;
    if (isShown) await suggest(new Set(pending.example.labels.map(keyOf)));
    say(`Learned as record ${done.sequence}${done.new_labels ? `, ${done.new_labels} new` : ""}.`);
    health();
  } catch (error) {
    say(error.message, true);
  }
}

function forget() {
  const pending = state.pending;
  if (pending) clearTimeout(pending.timer);
  state.pending = null;
  $("undo").hidden = true;
  return pending;
}

function undo() {
  if (!forget()) return;
  state.taught = false;
  say("Not taught.");
}

async function copy() {
  const rows = [...$("found").querySelectorAll("li")];
  const ticked = rows.filter((item) => item.querySelector("input").checked);
  const names = (ticked.length ? ticked : rows).map((item) => [...item.querySelector("label").childNodes].map((part) => part.textContent).join("\t"));
  try {
    await navigator.clipboard.writeText(names.join("\n"));
    say(`Copied ${names.length} ${names.length === 1 ? "label" : "labels"}.`);
  } catch {
    say("The browser does not allow this page to copy.", true);
  }
}

async function offerKnown(text) {
  try {
    const tag = state.language ? `&language=${encodeURIComponent(state.language)}` : "";
    const known = await call("GET", `labels?limit=20&contains=${encodeURIComponent(text)}${tag}`);
    for (const one of known.labels) if (one.name) state.names.set(one.label, one.name);
    $("known").replaceChildren(...known.labels.map((one) => make("option", { value: one.name ?? String(one.label) })));
  } catch {
    // the list of names is optional; the next suggestion shows the error
  }
}

const bytes = (n) => (n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`);
const milliseconds = (s) => `${(1000 * s).toFixed(1)}`;

function offerLanguages({ languages, language: shown }) {
  if ($("language").dataset.languages === languages.join(" ")) return;
  $("language").dataset.languages = languages.join(" ");
  $("languages").hidden = languages.length < 2;
  $("language").replaceChildren(...languages.map((tag) => make("option", { value: tag, textContent: tag, selected: tag === shown })));
}

async function health() {
  try {
    const model = await call("GET", "model");
    const now = model.service;
    Object.assign(state, { takes: model.takes, learns: model.learns });
    offerLanguages(model);
    $("model").textContent = `${model.name || "Labelwood"}: ${model.method}, ${model.labels.toLocaleString()} labels`;
    $("teaching").hidden = !model.learns;
    $("input-label").textContent = model.takes === "text" ? "Text" : "Features, for example 12:0.5 7:1";
    $("h-learned").textContent = now.examples_learned.toLocaleString();
    $("h-labels").textContent = model.labels.toLocaleString();
    $("h-log").textContent = bytes(now.log_bytes);
    $("h-latency").textContent = `${milliseconds(now.suggest_p50_seconds)} / ${milliseconds(now.suggest_p99_seconds)} ms`;
    $("h-drift").textContent = now.drift_examples ? now.drift_precision_at_1.toFixed(3) : "-";
    const trouble = now.learning_refused ? "learning is refused" : now.drift_alarm ? "drift alarm" : "";
    $("h-state").textContent = trouble || (model.learns ? "learning" : "read-only");
    $("h-state").classList.toggle("bad", Boolean(trouble));
  } catch (error) {
    $("h-state").textContent = error.message;
    $("h-state").classList.add("bad");
  }
}

$("input").addEventListener("input", () => {
  followText();
  $("why").hidden = $("marked").hidden = true;
  clearTimeout(state.timer);
  state.timer = setTimeout(() => suggest(), WAIT);
});
$("add").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("new-label").value.trim();
  const known = state.shown.find((one) => String(one.label) === text || one.name === text);
  const named = [...state.names].find(([, name]) => name === text);
  const label = known ? known.label : named ? named[0] : text;
  if (text) state.ticked.set(keyOf(label), label);
  $("new-label").value = "";
  show();
});
$("new-label").addEventListener("input", (event) => offerKnown(event.target.value));
$("teach").addEventListener("click", teach);
$("undo").addEventListener("click", undo);
$("copy").addEventListener("click", copy);
$("k").addEventListener("change", () => suggest());
$("language").addEventListener("change", () => {
  state.language = $("language").value;
  state.names.clear();
  $("why").hidden = $("marked").hidden = true;
  suggest();
});
addEventListener("pagehide", send);
$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  $("access").hidden = true;
  health().then(() => suggest());
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !$("teach").disabled) teach();
});
health().then(() => suggest());
setInterval(health, 3000);
