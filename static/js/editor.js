/* The suite editor: line numbers beside a plain text area, marks on lines with problems, and a warning before leaving. */
"use strict";

const text = document.getElementById("text");
const gutter = document.querySelector(".editor .gutter");

function problemLines() {
  return new Set(Array.from(document.querySelectorAll("#editor-problems [data-problem]"), (link) => Number(link.dataset.goto)));
}

function number() {
  const marked = problemLines();
  const lines = text.value.split("\n").length;
  const numbers = Array.from({ length: lines }, (_, index) => {
    const span = document.createElement("span");
    span.textContent = index + 1;
    if (marked.has(index + 1)) span.className = "is-marked";
    return span;
  });
  gutter.replaceChildren(...numbers.flatMap((span, index) => (index ? ["\n", span] : [span])));
  gutter.scrollTop = text.scrollTop;
}

function goTo(line) {
  const before = text.value.split("\n").slice(0, line - 1).join("\n").length;
  const start = line > 1 ? before + 1 : 0;
  text.focus();
  text.setSelectionRange(start, start);
  text.scrollTop = (line - 4) * parseFloat(getComputedStyle(text).lineHeight);
}

const saved = text.value;
let leaving = false;
text.addEventListener("input", number);
text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });
document.addEventListener("htmx:afterSettle", number);
document.getElementById("editor").addEventListener("submit", () => { leaving = true; });
window.addEventListener("beforeunload", (event) => {
  if (!leaving && text.value !== saved) event.preventDefault();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-goto]");
  if (!link) return;
  event.preventDefault();
  goTo(Number(link.dataset.goto));
});
number();
if (Number(text.dataset.line) > 1) goTo(Number(text.dataset.line));
