// The few things that all parts of the page need.

export const byId = (id) => document.getElementById(id);

export const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;

/** An element with these properties and children. */
export function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Shows a status to the visitor, also through a screen reader. */
export function say(text, isError = false) {
  const status = byId("status");
  if (status.textContent !== text) { status.textContent = text; }
  status.className = isError ? "error" : "";
}

/** Sends an order to the gateway; shows the reason if the gateway refuses it. */
export async function send(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  }).catch(() => null);
  if (answer?.ok) { return true; }
  const problem = await answer?.json().catch(() => null);
  say(problem?.detail ?? `The gateway refused it (${answer?.status ?? "no answer"}).`, true);
  return false;
}
