// The request behind an event, as it was on the wire.

import { make } from "./dom.js";

/** Shows a request in the panel of a section. */
export async function showRequest(section, exchange) {
  const answer = await fetch(`live/wire/${exchange}`);
  if (!answer.ok) { return; }
  const { request, response, curl } = await answer.json();
  const panel = section.querySelector(".wire");
  const command = make("pre", { className: "curl", tabIndex: 0 }, curl);
  const copy = make("button", { type: "button", className: "copy", textContent: "Copy" });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(curl);
      copy.textContent = "Copied";
    } catch {
      // Not every browser lets a page copy: then the visitor only has to press one key.
      getSelection().selectAllChildren(command);
      copy.textContent = "Selected";
    }
  });
  const close = make("button", { type: "button", className: "close", textContent: "Close" });
  close.addEventListener("click", () => hideRequest(section));
  panel.replaceChildren(
    make("h3", { textContent: "On the wire" }),
    close,
    make("pre", { className: "request", tabIndex: 0 }, text(request)),
    response
      ? make("pre", { className: "response", tabIndex: 0 }, text(response))
      : make("p", { textContent: "No answer yet." }),
    make("h3", { textContent: "The same request for a terminal" }),
    copy,
    command,
  );
  panel.hidden = false;
  panel.dataset.exchange = exchange;
  mark(section, exchange);
  panel.scrollIntoView({ block: panel.offsetHeight < innerHeight ? "nearest" : "start" });
}

export function hideRequest(section) {
  const panel = section.querySelector(".wire");
  panel.hidden = true;
  panel.replaceChildren();
  mark(section, null);
}

function mark(section, exchange) {
  for (const button of section.querySelectorAll(".events button")) {
    button.setAttribute("aria-pressed", button.dataset.exchange === String(exchange));
  }
}

function text({ start, headers, body }) {
  const lines = [start, ...headers.map(([name, value]) => `${name}: ${value}`)];
  return body === "" ? lines.join("\n") : `${lines.join("\n")}\n\n${readable(body)}`;
}

function readable(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
