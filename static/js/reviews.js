/* Reviewing statements of judges by keys, on a trial's page and in the queue. Each works by a button too. */
"use strict";

cardKeys({
  selector: "[data-statement]",
  keys: "adu",
  start: document.querySelector("[data-overrule]") ? "r" : "",
  act(key, card) {
    if (key !== "o") return false;
    const own = card?.querySelector("[data-key=o]");
    if (own) {
      own.click();
      return true;
    }
    const form = document.querySelector("details[data-overrule]");
    if (!form) return false;
    form.open = true;
    form.querySelector("select, textarea").focus();
    return true;
  },
});

/* A score is asked for what can replace it: a verdict, a number, or either. */
for (const form of document.querySelectorAll("[data-overrule] form")) {
  const select = form.elements.score;
  const offer = () => {
    const { takes } = select.selectedOptions[0].dataset;
    for (const part of form.querySelectorAll("[data-for]")) {
      part.hidden = takes !== "both" && takes !== part.dataset.for;
      for (const field of part.querySelectorAll("input")) field.disabled = part.hidden;
    }
  };
  select.addEventListener("change", offer);
  offer();
}
