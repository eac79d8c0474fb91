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
  query.set("format", "csv");
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
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (area.elements.paths && entries.some((entry) => entry.isDirectory)) {
    filesBelow(entries).then((files) => giveFolder(area, files));
    return;
  }
  input.files = event.dataTransfer.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
});

/* A form's files lose their folders on the way, so their paths go beside them. */
const LITTER = new Set([".git", "node_modules", "__pycache__", ".venv"]);
async function filesBelow(entries, folder = "") {
  const found = [];
  for (const entry of entries) {
    const path = folder + entry.name;
    if (entry.isFile) {
      found.push([path, await new Promise((resolve, reject) => entry.file(resolve, reject))]);
    } else if (!LITTER.has(entry.name)) {
      const reader = entry.createReader();
      for (;;) {
        /* A reader gives at most a hundred entries at once. */
        const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (!some.length) break;
        found.push(...(await filesBelow(some, `${path}/`)));
      }
    }
  }
  return found;
}
function giveFolder(form, files) {
  const transfer = new DataTransfer();
  for (const [, file] of files) transfer.items.add(file);
  const input = form.elements.file;
  input.files = transfer.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
  form.elements.paths.value = JSON.stringify(files.map(([path]) => path));
}
for (const label of document.querySelectorAll("[data-choose-folder]")) label.hidden = false;
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-drop]");
  if (!form?.elements.paths) return;
  if (event.target === form.elements.file) form.elements.paths.value = "";
  if (!event.target.closest("[data-choose-folder]")) return;
  const files = [...event.target.files].map((file) => [file.webkitRelativePath, file]);
  giveFolder(form, files.filter(([path]) => !path.split("/").some((part) => LITTER.has(part))));
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
