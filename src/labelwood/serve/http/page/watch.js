// The page that shows the gauges of the service over time. Text from the service is inserted as text.
"use strict";

const $ = (id) => document.getElementById(id);
const EVERY = 5000; // milliseconds between two requests
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 170, 52, 472, 12, 142];
const percent = (value) => `${(100 * value).toFixed(0)} %`;
const count = (value) => (value < 10 && value % 1 ? value.toFixed(2) : Math.round(value).toLocaleString());
const milliseconds = (value) => `${(1000 * value).toFixed(value < 0.01 ? 1 : 0)} ms`;
// A picture: its title, the gauges that are drawn with their names, how values are written, and the least upper end.
const PICTURES = [
  { title: "Quality", drawn: { drift_precision_at_1: "recent examples whose first suggestion was right" }, shown: percent, top: 1, needs: "drift_examples" },
  { title: "New labels", drawn: { drift_new_label_rate: "new labels per recent example" }, shown: (value) => value.toFixed(2), top: 0.1, needs: "drift_examples" },
  { title: "Labels", drawn: { labels: "labels known to the model" }, shown: count, top: 1 },
  { title: "Examples", drawn: { examples_learned: "examples learned" }, shown: count, top: 1 },
  { title: "Queue", drawn: { queue_length: "records waiting to be learned" }, shown: count, top: 1 },
  { title: "Latency", drawn: { suggest_p50_seconds: "median of a suggestion", suggest_p99_seconds: "99 % of suggestions" }, shown: milliseconds, top: 0.001 },
];

function drawn(tag, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

const clock = (seconds) => new Date(1000 * seconds).toLocaleString(undefined, { dateStyle: "short", timeStyle: "short" });

function figure({ title, drawn: lines, shown, top, needs }, seconds, values) {
  const kept = seconds.map((_, place) => place).filter((place) => !needs || values[needs][place] > 0);
  const [first, last] = [seconds[0], seconds.at(-1)];
  const highest = Math.max(top, ...Object.keys(lines).flatMap((name) => values[name]));
  const x = (place) => LEFT + ((RIGHT - LEFT) * (seconds[place] - first)) / Math.max(1, last - first);
  const y = (value) => BOTTOM - ((BOTTOM - TOP) * value) / highest;
  const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", id: `picture-${title.toLowerCase().replace(" ", "-")}` });
  for (const value of [0, highest / 2, highest])
    picture.append(drawn("line", { x1: LEFT, x2: RIGHT, y1: y(value), y2: y(value) }), drawn("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value)));
  picture.append(drawn("text", { x: LEFT, y: HEIGHT - 10 }, clock(first)), drawn("text", { x: RIGHT, y: HEIGHT - 10, "text-anchor": "end" }, clock(last)));
  const told = Object.entries(lines).map(([name, meaning], number) => {
    const points = kept.map((place) => `${x(place).toFixed(1)},${y(values[name][place]).toFixed(1)}`);
    if (points.length === 1) points.unshift(`${LEFT},${points[0].split(",")[1]}`); // a single sample is drawn as a level line
    if (points.length) picture.append(drawn("polyline", { points: points.join(" "), class: number ? "second" : "first" }));
    const now = kept.length ? shown(values[name][kept.at(-1)]) : "nothing yet";
    return `${number ? "Dashed: " : ""}${meaning}: ${now}.`;
  });
  const caption = document.createElement("figcaption");
  const name = document.createElement("strong");
  name.textContent = `${title}. `;
  caption.append(name, told.join(" "));
  picture.setAttribute("aria-label", `${title}. ${told.join(" ")}`);
  const element = document.createElement("figure");
  element.append(caption, picture);
  return element;
}

async function refresh() {
  const token = sessionStorage.getItem("token");
  try {
    const answer = await fetch("history", { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    const read = await answer.json();
    $("access").hidden = answer.status !== 401;
    if (!answer.ok) throw new Error(read.detail);
    $("status").textContent = "";
    if (read.seconds.length) $("pictures").replaceChildren(...PICTURES.map((one) => figure(one, read.seconds, read.values)));
  } catch (error) {
    $("status").textContent = error.message;
  }
}

$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  refresh();
});
refresh();
setInterval(refresh, EVERY);
