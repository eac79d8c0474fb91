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
