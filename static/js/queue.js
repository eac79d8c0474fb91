/* The queue of regressions: keys, the selection, and copying. Each works by a button or link too. */
"use strict";

cardKeys({
  selector: "[data-alert]",
  keys: "acsx",
  act(key, card) {
    if (key !== "o" || !card) return false;
    card.querySelector("details").open = !card.querySelector("details").open;
    return true;
  },
});

/* A card's buttons also save what was typed into its details, and an open card stays open. */
document.addEventListener("htmx:configRequest", (event) => {
  const more = event.detail.elt.closest("[data-alert]")?.querySelector("details.more");
  if (!more || event.detail.verb !== "post") return;
  const sent = event.detail.parameters;
  const typed = more.querySelector("form");
  for (const [name, value] of typed ? new FormData(typed) : []) if (sent[name] === undefined) sent[name] = value;
  sent.open = more.open ? "yes" : "";
});

const boxes = () => [...document.querySelectorAll("[name=alert][form=selected]")];
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) for (const box of boxes()) box.checked = event.target.checked;
  else if (!event.target.matches("[name=alert]")) return;
  const n = boxes().filter((box) => box.checked).length;
  document.querySelector("[data-selected]").textContent = n ? `${n} selected` : "Select all";
});
