/* Filters long lists of checkboxes by name; what is ticked stays in sight. Without a script the lists are whole. */
"use strict";

function narrow(field) {
  const items = [...document.getElementById(field.dataset.narrows).children];
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const item of items) {
    const text = item.textContent.toLowerCase();
    item.hidden = !item.querySelector(":checked") && !words.every((word) => text.includes(word));
  }
  const shown = items.filter((item) => !item.hidden).length;
  field.nextElementSibling.textContent = words.length ? `${shown} of ${items.length} shown` : "";
}
function offer(part) {
  for (const field of part.querySelectorAll("[data-narrows]")) {
    field.parentElement.hidden = false;
    narrow(field);
  }
}
document.addEventListener("input", (event) => event.target.matches("[data-narrows]") && narrow(event.target));
/* Filtering chooses nothing: it asks for no plan, and Enter sends nothing. */
document.addEventListener("change", (event) => event.target.matches("[data-narrows]") && event.stopPropagation(), true);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("[data-narrows]")) event.preventDefault();
});
document.addEventListener("htmx:oobAfterSwap", () => offer(document));
window.addEventListener("pageshow", () => offer(document));
