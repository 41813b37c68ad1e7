// The live page. It asks for events whenever the server says that there is something new, and
// while a run is under way, because bars grow with time. Pictures are drawn by the server.

import { byId, make, say, seconds, send } from "./dom.js";
import { keepNames } from "./lanes.js";
import { startReplay } from "./replay.js";
import { hideRequest, showRequest } from "./wire.js";

const sections = ["unfenced", "fenced"].map(byId);
// How often the pictures of a run that is under way are drawn again.
const FRAME_MS = 150;

let view = { run: 0, playing: false, acts: [] };
let refreshing = false;
let again = false;
// The status before the first run.
const FIRST_WORDS = byId("status").textContent;
let broken = false;
const replay = startReplay(times, () => {
  tell();
  return drawAll();
});

function times() {
  const all = view.acts.flatMap((act) => act.events.map((event) => event.at_ms));
  return [...new Set(all)].sort((a, b) => a - b);
}

async function refresh() {
  // There is one look at a time. Changes that come meanwhile cause one more look.
  if (refreshing) { again = true; return; }
  refreshing = true;
  try {
    do {
      again = false;
      const seen = await (await fetch("live/run")).json();
      // Another gateway at this address counts its runs from the beginning.
      const isOther = seen.gateway !== view.gateway || seen.run !== view.run;
      if (isOther) { sections.forEach(hideRequest); }
      if (isOther || seen.playing) { replay.reset(); }
      view = seen;
      // The connection is back, and there may be no other status to show.
      if (broken) { say(FIRST_WORDS); }
      broken = false;
      tell();
      await drawAll();
    } while (again);
  } catch {
    sayBroken("The gateway does not answer. Is it still running?");
  } finally {
    refreshing = false;
  }
}

function sayBroken(text) {
  broken = true;
  say(text, true);
}

const drawAll = () => Promise.all(sections.map(draw));
const drawn = new Map();
const namesOf = new Map(sections.map((section) => [section, keepNames(section.querySelector(".picture"))]));
// Answers may overtake each other: the last request counts.
const asked = new Map();

async function draw(section) {
  const moment = replay.moment();
  const until = moment === null ? "" : `until_ms=${Math.round(moment)}`;
  const mine = (asked.get(section) ?? 0) + 1;
  asked.set(section, mine);
  const answer = await fetch(`live/picture/${section.id}?${until}`);
  const link = section.querySelector("a.svg");
  const svg = answer.status === 200 ? await answer.text() : "";
  if (asked.get(section) !== mine) { return; }
  const picture = section.querySelector(".picture");
  // An equal picture stays, so that a mark stays in place while a visitor is about to click on it.
  if (drawn.get(section) !== svg) {
    drawn.set(section, svg);
    picture.innerHTML = svg;
    namesOf.get(section)();
  }
  follow(picture, view.playing || moment !== null);
  link.hidden = svg === "" || view.playing;
  link.href = `live/picture/${section.id}?alone=true&${until}`;
}

// Scrolls on a small screen. The present moment is at the right end of the picture; the whole story
// begins at the left end.
function follow(picture, isMoving) {
  if (isMoving) {
    picture.scrollLeft = picture.scrollWidth;
  } else if (picture.dataset.follows) {
    picture.scrollLeft = 0;
  }
  picture.dataset.follows = isMoving ? "the moment" : "";
}

// Shows everything but the pictures.
function tell() {
  for (const act of view.acts) {
    const section = byId(act.act);
    const verdict = section.querySelector(".verdict");
    verdict.hidden = !act.verdict || replay.moment() !== null;
    if (act.verdict) {
      verdict.className = `verdict ${act.verdict.good ? "good" : "bad"}`;
      verdict.textContent = `${act.verdict.good ? "✓" : "✗"} ${act.verdict.sentence}`;
    }
    tellEvents(section, act.events);
  }
  showStory();
  document.documentElement.dataset.playing = view.playing;
  const ready = view.acts.some((act) => act.client_1 === "running");
  const stopped = view.acts.some((act) => act.client_1 === "stopped");
  const mine = view.playing && view.by_hand;
  byId("run").disabled = view.playing;
  byId("hand").hidden = !mine && !byId("by-hand").checked;
  byId("stop").disabled = !(mine && ready && !stopped);
  byId("resume").disabled = !(mine && stopped);
  byId("kill").disabled = !(mine && (ready || stopped));
  const over = view.run > 0 && !view.playing;
  byId("replay").hidden = !over;
  if (over) { replay.show(); }
  if (view.failure) {
    say(`The run broke off: ${view.failure}`, true);
  } else if (view.playing) {
    say(progress(ready, stopped));
  } else if (view.run > 0) {
    say("The run is over. Below the pictures you can look at any moment of it again.");
  }
}

function progress(ready, stopped) {
  if (!view.by_hand) { return "Both runs are being played…"; }
  if (stopped) {
    return "Client 1 is frozen, and client 2 waits until the lock of client 1 ends. "
      + "Wake client 1 up or kill it when you like: before that, or after client 2 has written.";
  }
  return ready ? "Client 1 works and renews its lock. Freeze or kill it when you like." : "Both have begun…";
}

// Changes only new events, so that a button stays in place while a visitor is about to press it.
function tellEvents(section, events) {
  const list = section.querySelector(".events");
  const moment = replay.moment() ?? Infinity;
  events.forEach((event, place) => {
    const where = event.text.startsWith(event.lane) ? "" : `${event.lane}: `;
    const text = ` ${where}${event.text}`;
    let item = list.children[place];
    if (item?.dataset.key !== `${event.at_ms}${text}`) {
      const told = [make("time", { textContent: seconds(event.at_ms) }), text];
      const button = make("button", { type: "button" }, ...told);
      button.dataset.exchange = event.exchange;
      const fresh = make("li", {}, ...(event.exchange === undefined ? told : [button]));
      fresh.dataset.key = `${event.at_ms}${text}`;
      if (item) { item.replaceWith(fresh); } else { list.append(fresh); }
      item = fresh;
    }
    item.hidden = event.at_ms > moment;
  });
  while (list.children.length > events.length) { list.lastChild.remove(); }
}

const stories = [...document.querySelectorAll("input[name=story]")];
const chosenStory = () => stories.find((story) => story.checked).value;
let storyOf = null;

// Selects the story of the run, which another visitor may have begun.
function showStory() {
  const run = `${view.gateway}/${view.run}`;
  if (view.run > 0 && storyOf !== run) {
    storyOf = run;
    stories.forEach((story) => { story.checked = story.value === view.story; });
  }
  stories.forEach((story) => { story.disabled = view.playing; });
  for (const text of document.querySelectorAll("[data-story]")) {
    text.hidden = text.dataset.story !== chosenStory();
  }
}

function showHand() {
  byId("pause-for").disabled = byId("by-hand").checked;
  tell();
}

byId("controls").addEventListener("submit", async (event) => {
  event.preventDefault();
  replay.reset();
  byId("run").disabled = true;
  const begun = await send("live/run", {
    ttl_ms: Number(byId("ttl").value),
    pause_ms: Number(byId("pause-for").value),
    story: chosenStory(),
    by_hand: byId("by-hand").checked,
  });
  if (!begun) {
    byId("run").disabled = view.playing;
    return;
  }
  await refresh();
  // On a small screen the pictures are far below the button.
  const acts = byId("acts");
  if (acts.getBoundingClientRect().top > 0.7 * innerHeight) { acts.scrollIntoView(); }
});
for (const [id, cue] of [["stop", "pause"], ["resume", "resume"], ["kill", "kill"]]) {
  byId(id).addEventListener("click", () => send("live/cue", cue));
}
byId("by-hand").addEventListener("change", showHand);
stories.forEach((story) => story.addEventListener("change", showStory));
for (const [slider, shown] of [["ttl", "ttl-shown"], ["pause-for", "pause-shown"]]) {
  const show = () => { byId(shown).textContent = seconds(byId(slider).value); };
  byId(slider).addEventListener("input", show);
  show();
}
for (const section of sections) {
  section.addEventListener("click", (event) => {
    const exchange = event.target.closest("[data-exchange]:not(.wire)")?.dataset.exchange;
    if (exchange) { showRequest(section, exchange); }
  });
}

showHand();
setInterval(() => { if (view.playing) { refresh(); } }, FRAME_MS);
const changes = new EventSource("live/changes");
changes.addEventListener("open", refresh);
changes.addEventListener("message", refresh);
changes.addEventListener("error", () => sayBroken("The connection to the gateway broke; trying again…"));
