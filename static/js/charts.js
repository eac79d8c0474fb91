/* The large trend: its points are read by keys and pointer; Plotly draws it once a mouse points at it or it has the focus. */
"use strict";

/* Sizes of the server's drawing (runs/compare/trends_page/trend.py), which Plotly's takes over. */
const WIDTH = 1000, HEIGHT = 300, LEFT = 8, RIGHT = 944, TOP = 14, BOTTOM = 268, DAYS = 5;
const figures = new WeakMap();
const trendOf = (element) => element.closest?.("[data-figure]");
const pointsOf = (trend) => [...trend.querySelectorAll("a.point")];
const textOf = (point) => point.querySelector("title").textContent;
const plotOf = (trend) => figures.has(trend) && trend.querySelector(".plot");
const currentOf = (trend) => trend.querySelector("[role=slider]").ariaValueNow - 1;

/* light-dark() and color-mix() are resolved by the browser: a probe element takes the colour on. */
function color(variable) {
  const probe = document.createElement("span");
  probe.style.color = variable;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  dot.fillStyle = resolved;
  dot.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = dot.getImageData(0, 0, 1, 1).data;
  return `rgba(${red}, ${green}, ${blue}, ${(alpha / 255).toFixed(3)})`;
}

/* The days of some runs in sight, evenly spread. */
function ticks(days, [start, end]) {
  const first = Math.max(0, Math.ceil(start)), last = Math.min(days.length - 1, Math.floor(end));
  const labels = Math.max(1, Math.min(DAYS, last - first + 1));
  const places = [...Array(labels).keys()].map((n) => Math.round(first + (n * (last - first)) / Math.max(1, labels - 1)));
  const tickvals = [...new Set(places)];
  return { tickvals, ticktext: tickvals.map((place) => days[place]) };
}

function layout(figure, range, width) {
  const scale = width / WIDTH, { xaxis, yaxis, font, meta } = figure.layout, ticklen = 4 * scale;
  return {
    ...figure.layout, width, height: HEIGHT * scale,
    font: { ...font, family: getComputedStyle(document.body).fontFamily, size: 11 * scale },
    margin: { t: TOP * scale, r: (WIDTH - RIGHT) * scale, b: (HEIGHT - BOTTOM) * scale, l: LEFT * scale },
    xaxis: { ...xaxis, ticklen, range, ...ticks(meta, range) },
    yaxis: { ...yaxis, ticklen },
  };
}

/* A copy, because Plotly changes the range that it gets. */
const wholeRange = (figure) => [...figure.layout.xaxis.range];

function draw(trend, range) {
  const colors = {}, plot = trend.querySelector(".plot"), width = trend.querySelector(".trend-plot").clientWidth;
  const resolve = (_, value) => (value?.startsWith?.("var(") ? (colors[value] ??= color(value)) : value);
  const figure = JSON.parse(JSON.stringify(figures.get(trend)), resolve);
  plot.hidden = false;
  trend.querySelector(".drawn").hidden = true;
  range ||= plot.layout?.xaxis.range || figure.layout.xaxis.range;
  Plotly.react(plot, figure.data, layout(figure, range, width), { displayModeBar: false });
}

/* What is below the axis follows the axis. */
function placeSigns(trend, [start, end]) {
  for (const sign of trend.querySelectorAll(".sign")) {
    const x = LEFT + ((sign.dataset.at - start) / (end - start)) * (RIGHT - LEFT);
    sign.setAttribute("transform", `translate(${x})`);
    sign.classList.toggle("is-outside", x < LEFT || x > RIGHT);
  }
}

function zoom(trend, range) {
  const figure = figures.get(trend), whole = wholeRange(figure);
  draw(trend, range);
  placeSigns(trend, range);
  trend.querySelector("[data-whole]").hidden = range[0] <= whole[0] && range[1] >= whole[1];
}

let loading;
function loadPlotly(address) {
  loading ??= new Promise((resolve, reject) => {
    // It would add its rules as a style element, which the content security policy forbids; pictures.css has them.
    const rules = Object.assign(document.createElement("meta"), { id: "plotly.js-style-global", className: "no-inline-styles" });
    document.head.append(rules, Object.assign(document.createElement("script"), { src: address, onload: resolve, onerror: reject }));
  });
  return loading;
}

async function makeInteractive(trend) {
  if (!trend || trend.dataset.loading) return;
  trend.dataset.loading = "yes";
  let figure;
  try {
    [figure] = await Promise.all([fetch(trend.dataset.figure).then((answer) => answer.json()), loadPlotly(trend.dataset.plotly)]);
  } catch {
    return; // The server's drawing stays.
  }
  if (!trend.isConnected) return;
  figures.set(trend, figure);
  draw(trend);
  const plot = plotOf(trend);
  const line = figures.get(trend).data.length - 1;
  plot.on("plotly_hover", ({ points }) => points[0].curveNumber === line && show(trend, points[0].pointNumber));
  plot.on("plotly_click", ({ points }) => points[0].curveNumber === line && openCard(trend, points[0].pointNumber));
  plot.on("plotly_relayout", (changed) => {
    if ("xaxis.range[0]" in changed) zoom(trend, [changed["xaxis.range[0]"], changed["xaxis.range[1]"]]);
  });
  plot.on("plotly_doubleclick", () => zoom(trend, wholeRange(figures.get(trend))));
  if (trend.contains(document.activeElement)) read(trend, currentOf(trend));
}

/* Show a point as text; the slider announces it. */
function show(trend, index) {
  const points = pointsOf(trend), text = textOf(points[index]), slider = trend.querySelector("[role=slider]");
  slider.ariaValueNow = index + 1;
  slider.ariaValueText = text;
  trend.querySelector("[data-readout]").textContent = text;
  points.forEach((point, n) => point.classList.toggle("is-read", n === index));
}

/* Show a point, and mark it in the drawing. */
function read(trend, index) {
  show(trend, index);
  const plot = plotOf(trend);
  if (!plot) return;
  const { x } = figures.get(trend).data.at(-1), [start, end] = plot.layout.xaxis.range;
  if (x[index] < start || x[index] > end) zoom(trend, [x[index] - (end - start) / 2, x[index] + (end - start) / 2]);
  Plotly.Fx.hover(plot, [{ curveNumber: figures.get(trend).data.length - 1, pointNumber: index }]);
}

function openCard(trend, index) {
  show(trend, index);
  const card = trend.querySelector("dialog"), point = pointsOf(trend)[index], { run } = point.dataset;
  const compare = card.querySelector("[data-compare]");
  card.ariaLabel = `Run ${run}`;
  card.querySelector("[data-words]").textContent = textOf(point);
  card.querySelector("[data-open]").href = point.getAttribute("href");
  compare.search = `runs=${run},${trend.dataset.newest}`;
  compare.hidden = run === trend.dataset.newest;
  card.classList.toggle("is-right", index < pointsOf(trend).length / 2);
  if (!card.open) card.show();
  card.querySelector("[data-open]").focus();
}

function closeCard(card) {
  card.close();
  trendOf(card).querySelector("[role=slider]").focus();
}

function annotate(run) {
  const form = document.querySelector("[data-annotation]");
  form.open = true;
  form.querySelector("[name=run]").value = run;
  form.querySelector("[name=text]").focus();
}

const moves = {
  ArrowLeft: (at) => at - 1, ArrowDown: (at) => at - 1, ArrowRight: (at) => at + 1, ArrowUp: (at) => at + 1,
  PageUp: (at) => at + 10, PageDown: (at) => at - 10, Home: () => 0, End: (at, last) => last,
};
document.addEventListener("keydown", (event) => {
  const trend = trendOf(event.target);
  if (!trend || event.ctrlKey || event.metaKey || event.altKey) return;
  const card = event.target.closest("dialog");
  if (card && event.key === "Escape") closeCard(card);
  if (!event.target.matches("[role=slider]")) return;
  const last = pointsOf(trend).length - 1, move = moves[event.key];
  if (move) read(trend, Math.max(0, Math.min(last, move(currentOf(trend), last))));
  else if (event.key === "Enter" || event.key === " ") openCard(trend, currentOf(trend));
  else return;
  event.preventDefault();
});

/* A finger scrolls the chart, which Plotly would take for a zoom. */
document.addEventListener("pointerover", (event) => {
  const trend = trendOf(event.target), point = event.target.closest?.("a.point");
  if (trend && event.pointerType !== "touch") makeInteractive(trend);
  if (point) show(trend, pointsOf(trend).indexOf(point));
});
document.addEventListener("focusin", (event) => {
  if (event.target.matches("[role=slider]")) {
    makeInteractive(trendOf(event.target));
    read(trendOf(event.target), currentOf(trendOf(event.target)));
  }
});
document.addEventListener("click", (event) => {
  const trend = trendOf(event.target), point = event.target.closest("a.point");
  if (!trend) return;
  if (point && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    openCard(trend, pointsOf(trend).indexOf(point));
  }
  if (event.target.closest("[data-close]")) closeCard(event.target.closest("dialog"));
  if (event.target.closest("[data-annotate]")) annotate(pointsOf(trend)[currentOf(trend)].dataset.run);
  if (event.target.closest("[data-whole]")) {
    zoom(trend, wholeRange(figures.get(trend)));
    trend.querySelector("[role=slider]").focus();
  }
});

function redraw() {
  for (const trend of document.querySelectorAll("[data-figure]")) if (plotOf(trend)) draw(trend);
}
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  for (const plot of detail.target.querySelectorAll(".js-plotly-plot")) Plotly.purge(plot);
});
