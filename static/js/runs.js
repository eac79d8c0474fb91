/* The list of runs: its keys, and the runs selected to compare. Each works by a link or button too. */
"use strict";

const LIMITS = [2, 10];
const rows = () => [...document.querySelectorAll("[data-run]")];
const here = () => document.activeElement.closest("[data-run]");
const boxes = () => [...document.querySelectorAll("[name=runs][form=selected]")];

function step(by) {
  const all = rows();
  const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(here()) + by))];
  const link = next?.querySelector("a");
  link?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = document.getElementById("keys");
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "x" && here()) here().querySelector("[name=runs]").click();
  else if (event.key === "c" && selected().length) document.getElementById("selected").requestSubmit();
  else if (event.key === "?") {
    keys.open = !keys.open;
    keys.querySelector("summary").focus();
  } else return;
  event.preventDefault();
});

const selected = () => boxes().filter((box) => box.checked);

/* The bar stays in sight, counts, and lets only a number of runs be compared that a page can show. */
function showSelection() {
  const bar = document.getElementById("selected");
  if (!bar) return;
  const chosen = selected();
  const [fewest, most] = LIMITS;
  for (const row of rows()) row.classList.toggle("is-selected", row.querySelector("[name=runs]").checked);
  for (const box of boxes()) box.disabled = !box.checked && chosen.length >= most;
  bar.classList.toggle("is-shown", chosen.length > 0);
  bar.querySelector("[type=reset]").hidden = !chosen.length;
  bar.querySelector("button").disabled = chosen.length < fewest;
  bar.querySelector("[data-selected]").textContent = chosen.length
    ? `${chosen.length} of at most ${most} runs selected: ${chosen.map((box) => box.value).join(", ")}`
    : "Select two to ten runs to compare them.";
}
document.addEventListener("change", (event) => event.target.matches("[name=runs]") && showSelection());
document.addEventListener("reset", () => setTimeout(showSelection));
document.addEventListener("htmx:afterSettle", showSelection);
showSelection();

/* A view saves the filters in force, which the form may have changed since the page was loaded. */
document.addEventListener("submit", (event) => {
  const query = event.target.querySelector("[data-query]");
  if (query) query.value = new URLSearchParams(new FormData(document.getElementById("run-filters"))).toString();
});
