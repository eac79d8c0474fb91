/* What neither HTML nor htmx can do: keys, dropped files, and saying that a request failed. */
"use strict";

const keys = { "/": ".search input", j: "a[rel=next]", k: "a[rel=prev]" };

document.addEventListener("keydown", (event) => {
  const search = document.querySelector(".search input");
  if (!search || event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
  event.preventDefault();
  search.focus();
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  const element = keys[event.key] && document.querySelector(keys[event.key]);
  if (typing || !element || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (element.matches("input")) element.focus();
  else element.click();
});

/* Close open menus on Escape or an outside click. */
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

/* A cited command that is not drawn, as another tab is open: the page is loaded with it. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.cite[href^='#c']");
  if (!link || document.getElementById(link.hash.slice(1))) return;
  event.preventDefault();
  location.assign(`?part=commands${link.hash}`);
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

/* Filters change the address without drawing the head of the page again. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-table]");
  if (!link) return;
  const query = new URLSearchParams(location.search);
  query.append("format", "csv");
  if (link.dataset.table) query.set("table", link.dataset.table);
  link.search = query;
});

document.addEventListener("dragover", (event) => {
  if (event.target.closest("[data-drop]")) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  const area = event.target.closest("[data-drop]");
  if (!area) return;
  event.preventDefault();
  const input = area.querySelector("input[type=file]");
  input.files = event.dataTransfer.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
});

function say(sentence) {
  const notice = document.getElementById("notice");
  notice.textContent = sentence;
  notice.hidden = !sentence;
}
document.addEventListener("htmx:sendError", () => say("The server cannot be reached. This page may be out of date. Retrying…"));
document.addEventListener("htmx:responseError", (event) => say(`The server answered ${event.detail.xhr.status}. Load the page again.`));
document.addEventListener("htmx:afterOnLoad", () => say(""));

/* A part that somebody asked for anew shows a skeleton until it is there. */
document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, target } = event.detail;
  if (target && !elt.matches("[hx-trigger^='every']")) target.setAttribute("aria-busy", "true");
});
document.addEventListener("htmx:afterRequest", (event) => event.detail.target?.removeAttribute("aria-busy"));

/* Where the part that is swapped had the focus, htmx gives it to the element of the same id; without one it goes to the part. */
let focused = "";
document.addEventListener("htmx:beforeSwap", (event) => {
  focused = event.detail.target.contains(document.activeElement) ? event.detail.target.id : "";
});
document.addEventListener("htmx:afterSettle", (event) => {
  const part = focused && document.activeElement === document.body && document.getElementById(focused);
  focused = "";
  if (part) {
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  }
  announce(event.detail.elt);
});

/* Announce the result of a swap to screen readers. */
function announce(part) {
  const announced = part.querySelector("[data-announce]");
  if (announced) document.getElementById("announcement").textContent = announced.textContent.trim();
}
