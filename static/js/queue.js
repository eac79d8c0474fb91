/* The queue of regressions: keys, the selection, and copying. Each works by a button or link too. */
"use strict";

const cards = () => [...document.querySelectorAll("[data-alert]")];
const here = () => document.activeElement.closest("[data-alert]");

function step(by) {
  const all = cards();
  const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(here()) + by))];
  if (!next) return;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function show(keys) {
  keys.open = !keys.open;
  keys.querySelector("summary").focus();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const card = here();
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") show(document.getElementById("keys"));
  else if (card && event.key === "o") card.querySelector("details").open = !card.querySelector("details").open;
  else if (card && "acsx".includes(event.key)) card.querySelector(`[data-key=${event.key}]`)?.click();
  else return;
  event.preventDefault();
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

/* Without the right to the clipboard the link opens the text. */
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-copy]");
  if (!link || !navigator.clipboard) return;
  event.preventDefault();
  try {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(String(answer.status));
    await navigator.clipboard.writeText(await answer.text());
    link.textContent = "✓ Copied";
  } catch {
    location.assign(link.href);
  }
});
