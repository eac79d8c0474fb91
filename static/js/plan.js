/* Start takes what the form says: while its plan is being made again the press waits, and asks again only if the plan grew. */
"use strict";

const form = document.getElementById("plan")?.closest("form");
let changed = false;
let planning = false;
let pressed = 0;

const trials = () => Number(form.querySelector("[name=planned]")?.value || 0);
const isEdited = (field) => {
  if (field.matches("button, [type=hidden]")) return false;
  if (field.options) {
    const preset = [...field.options].some((each) => each.defaultSelected);
    if (field.type === "select-one" && !preset) return field.selectedIndex > 0;
    return [...field.options].some((each) => each.selected !== each.defaultSelected);
  }
  return ["checkbox", "radio"].includes(field.type) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
};
function note(sentence) {
  const shown = document.createElement("p");
  shown.className = "callout is-warn";
  shown.setAttribute("role", "alert");
  shown.textContent = sentence;
  document.getElementById("plan").prepend(shown);
  shown.scrollIntoView({ block: "center" });
}
const isPlan = (event) => event.detail.target?.id === "plan";

form?.addEventListener("change", () => { changed = true; });
form?.addEventListener("submit", (event) => {
  if (event.submitter?.name !== "start" || !(changed || planning)) return;
  event.preventDefault();
  pressed = trials() || 1;
  event.submitter.setAttribute("aria-disabled", "true");
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (isPlan(event)) [changed, planning] = [false, true];
});
document.addEventListener("htmx:beforeSwap", (event) => {
  // The plan of an older form would put its choices back; the newer form's request follows.
  if (isPlan(event) && changed) event.detail.shouldSwap = false;
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.elt.id !== "plan") return;
  planning = false;
  if (!pressed || changed) return;
  const before = pressed;
  pressed = 0;
  if (!trials()) return;
  if (trials() > before) note(`The plan grew to ${trials()} trials. Press Start again to run them.`);
  else form.requestSubmit(form.querySelector("[name=start]"));
});
for (const name of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(name, () => { [changed, planning, pressed] = [false, false, 0]; });
}
window.addEventListener("pageshow", () => {
  // Typed before the scripts ran, or filled in again by the browser on going back.
  for (const field of [...(form?.elements ?? [])].filter(isEdited)) {
    field.dispatchEvent(new Event("change", {bubbles: true}));
  }
});
