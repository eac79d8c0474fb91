/* The list of runs: its keys, and the runs selected to compare. Each works by a link or button too. */
"use strict";

const LIMITS = [2, 10];
const rows = () => [...document.querySelectorAll("[data-run]")];
const boxes = () => [...document.querySelectorAll("[name=runs][form=selected]")];

cardKeys({
  selector: "[data-run]",
  focus: (row) => row.querySelector("a"),
  act(key, row) {
    if (key === "x" && row) row.querySelector("[name=runs]").click();
    else if (key === "c" && selected().length) document.getElementById("selected").requestSubmit();
    else return false;
    return true;
  },
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
