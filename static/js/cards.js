/* Keys of pages with cards: j and k step, ? shows the keys, others click what has them on the focused card. */
"use strict";

function cardKeys({ selector, keys = "", act = () => false, start = "", focus = (card) => card }) {
  const cards = () => [...document.querySelectorAll(selector)];
  const here = () => document.activeElement.closest(selector);

  function step(by) {
    const all = cards();
    const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(here()) + by))];
    if (!next) return;
    focus(next)?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  function show(list) {
    if (!list) return;
    list.open = !list.open;
    list.querySelector("summary").focus();
  }

  /* In the capture phase, so that j and k inside a card don't also turn the page. */
  document.addEventListener(
    "keydown",
    (event) => {
      const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const card = here();
      const steps = !start || card;
      if (steps && event.key === "j") step(1);
      else if (steps && event.key === "k") step(-1);
      else if (start && event.key === start) step(card ? 0 : 1);
      else if (event.key === "?") show(document.getElementById("keys"));
      else if (act(event.key, card)) event.stopPropagation();
      else if (card && keys.includes(event.key)) card.querySelector(`[data-key=${event.key}]`)?.click();
      else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    true,
  );
}
