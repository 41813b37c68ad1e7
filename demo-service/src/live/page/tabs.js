// Two views. The one that is shown is in the address, so that it can be sent to somebody.

import { byId } from "./dom.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];
const panelOf = (tab) => byId(tab.getAttribute("aria-controls"));

/** `shown(id)` is called with the panel that is shown, now and whenever it changes. */
export function startTabs(shown) {
  const show = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
      panelOf(tab).hidden = tab !== chosen;
    }
    shown(panelOf(chosen).id);
  };
  const ofAddress = () => tabs.find((tab) => location.hash === `#${panelOf(tab).id}`) ?? tabs[0];
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => {
      history.replaceState(null, "", `#${panelOf(tab).id}`);
      show(tab);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) {
        const next = tabs[(place + step + tabs.length) % tabs.length];
        next.focus();
        next.click();
      }
    });
  }
  addEventListener("hashchange", () => show(ofAddress()));
  show(ofAddress());
}
