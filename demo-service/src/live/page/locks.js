// The lock service as it is. The gateway is asked only while somebody looks.

import { byId, make, seconds } from "./dom.js";

const COUNTS = [
  ["grants", "Leases granted"],
  ["renewals", "Renewed"],
  ["releases", "Given back"],
  ["losses", "Lost"],
  ["writes", "Writes let through"],
  ["refusals", "Refused"],
];
// Rates are over so many looks: long enough to be read, short enough to follow.
const WINDOW = 6;

let source = null;
let looks = [];

export function watch(isShown) {
  if (!isShown) {
    source?.close();
    source = null;
    return;
  }
  if (source) { return; }
  looks = [];
  byId("here").textContent = location.origin;
  source = new EventSource("live/locks");
  source.addEventListener("message", (event) => show(JSON.parse(event.data)));
  source.addEventListener("error", () => tell("The connection to the gateway broke; trying again…", true));
}

function show(look) {
  // The clock begins again when the gateway does.
  if (looks.length > 0 && look.at_ms < looks.at(-1).at_ms) { looks = []; }
  looks = [...looks, look].slice(-WINDOW);
  byId("counts").replaceChildren(...COUNTS.map(([name, label]) => figure(name, label)));
  byId("resources").replaceChildren(...look.resources.map(row));
  const { length } = look.resources;
  byId("held").hidden = length === 0;
  const told = look.problem ? `${look.problem}.` : summary(length, look.more);
  tell(`Lock service: ${look.kind}. ${told}`, Boolean(look.problem));
}

function summary(shown, more) {
  if (shown === 0) { return "Nothing is held or waited for."; }
  return `${shown + more} held or waited for${more ? `, ${shown} are shown` : ""}.`;
}

function figure(name, label) {
  const [first, last] = [looks[0], looks.at(-1)];
  const time = (last.at_ms - first.at_ms) / 1000;
  const rate = time > 0 ? (last.counts[name] - first.counts[name]) / time : 0;
  const figure = make("div", { className: `count ${name}` },
    make("dt", { textContent: label }),
    make("dd", { textContent: last.counts[name] }),
    make("dd", { className: "rate", textContent: `${rate === 0 ? 0 : rate.toFixed(1)} a second` }));
  figure.dataset.name = name;
  return figure;
}

function row({ resource, lease, waiters }) {
  const cells = [
    ["Resource", "resource", resource],
    ["Ends in", "number", lease ? seconds(lease.remaining_ms) : "–"],
    ["Waiting", "number", waiters ?? "?"],
    ["Token", "number", lease?.token ?? "–"],
    ["Holder (a hash)", "holder", lease?.holder_fingerprint ?? "nobody"],
    ["Note", "note", lease?.metadata ?? ""],
  ];
  return make("tr", { role: "row" }, ...cells.map(([label, className, textContent]) => {
    const cell = make("td", { role: "cell", className, textContent });
    cell.dataset.label = label;
    return cell;
  }));
}

function tell(text, isError = false) {
  const status = byId("service-status");
  if (status.textContent !== text) { status.textContent = text; }
  status.className = isError ? "error" : "";
}
