// The live page. It holds no state of its own but the moment that is looked at: what happens is asked
// for whenever the server says that there is something new, and while a run is under way, because
// bars grow with time.

const byId = (id) => document.getElementById(id);
const acts = ["unfenced", "fenced"];
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;

// How often the pictures of a run that is under way are drawn again.
const FRAME_MS = 150;

let view = { run: 0, playing: false, now_ms: 0, acts: [] };
// The moment of the replay; null shows all that there is.
let moment = null;
let drawing = false;
let again = false;

async function refresh() {
  // One at a time; whatever comes meanwhile is one more look.
  if (drawing) { again = true; return; }
  drawing = true;
  try {
    do {
      again = false;
      const answer = await fetch("live/run");
      const seen = await answer.json();
      if (seen.run !== view.run || seen.playing) { moment = null; }
      view = seen;
      tell();
      await Promise.all(acts.map(draw));
    } while (again);
  } catch {
    say("The gateway does not answer. Is it still running?", true);
  } finally {
    drawing = false;
  }
}

async function draw(act) {
  const until = moment === null ? "" : `?until_ms=${Math.round(moment)}`;
  const answer = await fetch(`live/picture/${act}${until}`);
  const place = byId(act).querySelector(".picture");
  const link = byId(act).querySelector("a.svg");
  const svg = answer.status === 200 ? await answer.text() : "";
  place.innerHTML = svg;
  link.hidden = svg === "" || view.playing;
  if (!link.hidden) {
    URL.revokeObjectURL(link.href);
    const standalone = svg.replace("<svg", '<svg width="960"');
    link.href = URL.createObjectURL(new Blob([standalone], { type: "image/svg+xml" }));
  }
}

// Everything but the pictures.
function tell() {
  for (const act of view.acts) {
    const section = byId(act.act);
    const verdict = section.querySelector(".verdict");
    verdict.hidden = !act.verdict || moment !== null;
    if (act.verdict) {
      verdict.className = `verdict ${act.verdict.good ? "good" : "bad"}`;
      verdict.textContent = `${act.verdict.good ? "✓" : "✗"} ${act.verdict.sentence}`;
    }
    const until = moment ?? Infinity;
    const items = act.events.filter((event) => event.at_ms <= until).map((event) => {
      const item = document.createElement("li");
      const time = document.createElement("time");
      time.textContent = seconds(event.at_ms);
      item.append(time, ` ${event.lane}: ${event.text}`);
      return item;
    });
    section.querySelector(".events").replaceChildren(...items);
  }
  document.documentElement.dataset.playing = view.playing;
  const ready = view.acts.some((act) => act.client_1 === "running");
  const stopped = view.acts.some((act) => act.client_1 === "stopped");
  byId("run").disabled = view.playing;
  byId("hand").hidden = !byId("by-hand").checked && !(view.playing && view.by_hand);
  byId("stop").disabled = !(view.playing && view.by_hand && ready && !stopped);
  byId("resume").disabled = !(view.playing && view.by_hand && stopped);
  const over = view.run > 0 && !view.playing;
  byId("replay").hidden = !over;
  if (over) { showMoment(); }
  if (view.failure) {
    say(`The run broke off: ${view.failure}`, true);
  } else if (view.playing) {
    say(progress(ready, stopped));
  } else if (view.run > 0) {
    say("Both have come to their end. Drag the slider to look at any moment of it.");
  }
}

function progress(ready, stopped) {
  if (!view.by_hand) { return "Both are being played…"; }
  if (stopped) {
    return "Client 1 stands still, and client 2 waits for its lease to end. Resume client 1 when you like: "
      + "before that, or after client 2 has written.";
  }
  return ready ? "Client 1 works and renews its lease. Stop it when you like." : "Both have begun…";
}

function say(text, isError = false) {
  const status = byId("status");
  if (status.textContent !== text) { status.textContent = text; }
  status.className = isError ? "error" : "";
}

function end() {
  const last = view.acts.flatMap((act) => act.events).reduce((most, event) => Math.max(most, event.at_ms), 0);
  return last;
}

function showMoment() {
  const slider = byId("moment");
  slider.max = end();
  slider.value = moment ?? end();
  byId("moment-shown").textContent = seconds(moment ?? end());
}

async function send(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    say(problem.detail ?? `The gateway answered ${answer.status}.`, true);
  }
}

byId("controls").addEventListener("submit", async (event) => {
  event.preventDefault();
  stopReplay();
  byId("run").disabled = true;
  await send("live/run", {
    ttl_ms: Number(byId("ttl").value),
    pause_ms: Number(byId("pause-for").value),
    by_hand: byId("by-hand").checked,
  });
  await refresh();
});
byId("stop").addEventListener("click", () => send("live/cue", "pause"));
byId("resume").addEventListener("click", () => send("live/cue", "resume"));
byId("by-hand").addEventListener("change", () => {
  byId("pause-for").disabled = byId("by-hand").checked;
  tell();
});
for (const [slider, shown] of [["ttl", "ttl-shown"], ["pause-for", "pause-shown"]]) {
  const show = () => { byId(shown).textContent = seconds(byId(slider).value); };
  byId(slider).addEventListener("input", show);
  show();
}

// The replay: the same pictures, up to a moment.
let replaying = null;

function stopReplay() {
  if (replaying !== null) { cancelAnimationFrame(replaying); }
  replaying = null;
  byId("play-again").textContent = "▶ Play";
}

async function lookAt(at) {
  moment = at >= end() ? null : at;
  tell();
  await Promise.all(acts.map(draw));
}

byId("moment").addEventListener("input", () => {
  stopReplay();
  lookAt(Number(byId("moment").value));
});
byId("play-again").addEventListener("click", () => {
  if (replaying !== null) { stopReplay(); return; }
  byId("play-again").textContent = "Hold";
  let at = moment ?? 0;
  let before = performance.now();
  const frame = async (now) => {
    at += (now - before) * Number(byId("speed").value);
    before = now;
    await lookAt(at);
    if (replaying === null) { return; }
    if (moment === null) { stopReplay(); } else { replaying = requestAnimationFrame(frame); }
  };
  replaying = requestAnimationFrame(frame);
});

setInterval(() => { if (view.playing) { refresh(); } }, FRAME_MS);
const changes = new EventSource("live/changes");
changes.addEventListener("message", refresh);
changes.addEventListener("error", () => say("The connection to the gateway broke; trying again…", true));
