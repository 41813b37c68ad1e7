// Looks at a run again: the same pictures, up to a moment.

import { byId, seconds } from "./dom.js";

const slider = byId("moment");
const button = byId("play-again");

/** `times()` are those of the events; `look(moment)` shows one, null shows all that there is. */
export function startReplay(times, look) {
  let moment = null;
  // The turn that plays, so that one that was stopped while it waited does not go on.
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
    /** Back to all that there is. */
    reset() { stop(); moment = null; },
  };
}
