// Plays a run again: the same pictures, up to a moment.

import { byId, seconds } from "./dom.js";

const slider = byId("moment");
const button = byId("play-again");

/** `times()` are those of all events; `look(moment)` shows a moment, `look(null)` everything. */
export function startReplay(times, look) {
  let moment = null;
  // The present turn of playing. A turn that was stopped while it waited must not go on.
  let playing = null;
  const end = () => Math.max(0, ...times());

  const show = () => {
    slider.max = end();
    slider.value = moment ?? end();
    byId("moment-shown").textContent = seconds(moment ?? end());
  };
  const stop = () => {
    playing = null;
    button.textContent = "▶ Play again";
  };
  const lookAt = async (at) => {
    moment = at >= end() ? null : Math.max(0, at);
    show();
    await look(moment);
  };
  const step = (next) => {
    stop();
    const at = next(moment ?? end());
    if (at !== undefined) { lookAt(at); }
  };

  slider.addEventListener("input", () => { stop(); lookAt(Number(slider.value)); });
  byId("back").addEventListener("click", () => step((now) => times().findLast((at) => at < now)));
  byId("forth").addEventListener("click", () => step((now) => times().find((at) => at > now)));
  button.addEventListener("click", () => {
    if (playing !== null) { stop(); return; }
    button.textContent = "❚❚ Hold";
    let at = moment ?? 0;
    let before = performance.now();
    const turn = {};
    const frame = async (now) => {
      if (playing !== turn) { return; }
      at += Math.max(0, now - before) * Number(byId("speed").value);
      before = now;
      await lookAt(at);
      if (playing !== turn) { return; }
      if (moment === null) { stop(); } else { requestAnimationFrame(frame); }
    };
    playing = turn;
    requestAnimationFrame(frame);
  });

  return {
    show,
    moment: () => moment,
    /** Goes back to the whole run. */
    reset() { stop(); moment = null; },
  };
}
