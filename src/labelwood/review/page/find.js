// The field that finds labels while somebody types: a combobox with a list of hits.
import { $, call, make, nameParts, say } from "./common.js";

const PAUSE = 60; // milliseconds between the last key and the request
const state = { hits: [], chosen: 0, asked: 0, timer: 0 };
let add = () => {};
let leave = () => {};
let settings = () => ({ language: "", newLabels: false });

// `onAdd` takes a label that was chosen, `onLeave` the focus when the field is left.
export function setUpFind({ onAdd, onLeave, getSettings }) {
  [add, leave, settings] = [onAdd, onLeave, getSettings];
  $("query").addEventListener("input", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(find, PAUSE);
  });
  $("query").addEventListener("keydown", onKey);
  $("query").addEventListener("blur", () => setTimeout(close, 200));
}

export function openFind() {
  $("query").focus();
  $("query").select();
}

async function find() {
  const typed = $("query").value.trim();
  const number = ++state.asked;
  if (!typed) return close();
  try {
    const { language } = settings();
    const found = await call("GET", `find?q=${encodeURIComponent(typed)}&language=${encodeURIComponent(language)}`);
    if (number !== state.asked) return; // somebody typed on
    show(found.labels, typed);
  } catch (error) {
    say(error.message, true);
  }
}

function show(labels, typed) {
  const isKnown = labels.some((one) => one.label === typed || one.name === typed);
  state.hits = settings().newLabels && !isKnown ? [...labels, { label: typed, name: typed, place: [], isNew: true }] : labels;
  state.chosen = 0;
  $("hits").replaceChildren(...state.hits.map(item));
  if (!state.hits.length) $("hits").append(make("li", { textContent: "No label begins like this." }));
  $("hits").hidden = false;
  $("hits").dataset.query = typed;
  $("query").setAttribute("aria-expanded", "true");
  mark();
}

function item(one, place) {
  const parts = one.isNew ? [make("span", { textContent: `New label: ${one.name}` })] : nameParts(one);
  const element = make("li", { id: `hit-${place}` }, ...parts);
  element.setAttribute("role", "option");
  element.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  element.addEventListener("click", () => choose(place));
  return element;
}

function mark() {
  [...$("hits").children].forEach((one, place) => one.setAttribute("aria-selected", String(place === state.chosen && state.hits.length > 0)));
  if (state.hits.length) {
    $("query").setAttribute("aria-activedescendant", `hit-${state.chosen}`);
    $(`hit-${state.chosen}`).scrollIntoView({ block: "nearest" });
  } else $("query").removeAttribute("aria-activedescendant");
}

function close() {
  state.asked += 1;
  state.hits = [];
  $("hits").hidden = true;
  $("hits").replaceChildren();
  delete $("hits").dataset.query;
  $("query").setAttribute("aria-expanded", "false");
  $("query").removeAttribute("aria-activedescendant");
}

function choose(place) {
  const one = state.hits[place];
  if (!one) return;
  $("query").value = "";
  close();
  add(one);
}

function onKey(event) {
  if (event.key === "Escape") {
    $("query").value = "";
    close();
    leave();
  } else if (event.key === "Enter") {
    event.preventDefault();
    choose(state.chosen);
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : -1;
    if (state.hits.length) state.chosen = (state.chosen + step + state.hits.length) % state.hits.length;
    mark();
  }
}
