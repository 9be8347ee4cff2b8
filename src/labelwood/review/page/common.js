// What the parts of the page share. Text from the service or the user is inserted as text, never as markup.

export const $ = (id) => document.getElementById(id);

export const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

export const drawn = (tag, attributes, text = "") => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
};

export function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

// An error of the service; without a status, the service did not answer.
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function ask(method, path, body) {
  const headers = {};
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), keepalive: method === "POST" });
  } catch {
    throw new Refused("The service does not answer.", 0);
  }
  if (answer.ok) return answer;
  const read = await answer.json().catch(() => ({ detail: answer.statusText }));
  throw new Refused(read.detail, answer.status);
}

export const call = async (method, path, body) => (await ask(method, path, body)).json();

export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// The name of a label, the name that was found, and its place in the hierarchy.
export function nameParts({ label, name, place, also }) {
  const shown = [make("span", { className: "name", textContent: name })];
  if (also && also !== label) shown.push(make("span", { className: "also", textContent: `also: ${also}` }));
  if (place.length) shown.push(make("span", { className: "place", textContent: place.join(" › ") }));
  return shown;
}
