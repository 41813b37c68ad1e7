// Looks at a run again: the same pictures, up to a moment.

import { byId, seconds } from "./dom.js";

const slider = byId("moment");
const button = byId("play-again");

/** `times()` are those of the events; `look(moment)` shows one, null shows all that there is. */
export function startReplay(times, look) {
  let moment = null;
  let playing = null;
  const end = () => Math.max(0, ...times());

  const show = () => {
    slider.max = end();
    slider.value = moment ?? end();
    byId("moment-shown").textContent = seconds(moment ?? end());
  };
  const stop = () => {
    if (playing !== null) { cancelAnimationFrame(playing); }
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
    const frame = async (now) => {
      at += Math.max(0, now - before) * Number(byId("speed").value);
      before = now;
      await lookAt(at);
      if (playing === null) { return; }
      if (moment === null) { stop(); } else { playing = requestAnimationFrame(frame); }
    };
    playing = requestAnimationFrame(frame);
  });

  return {
    show,
    moment: () => moment,
    /** Back to all that there is. */
    reset() { stop(); moment = null; },
  };
}
