/* Draws the figures that the server describes: roles become the colours of the tokens, in light and dark. */
"use strict";

/* light-dark() and color-mix() are resolved by the browser: a probe element takes the colour on. */
function color(token) {
  const probe = document.createElement("span");
  probe.style.color = `var(--${token})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  dot.fillStyle = resolved;
  dot.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = dot.getImageData(0, 0, 1, 1).data;
  return `rgba(${red}, ${green}, ${blue}, ${(alpha / 255).toFixed(3)})`;
}

function colored(trace) {
  const { role, links, ...plain } = trace;
  if (role === "band") return { ...plain, fillcolor: color("band") };
  return { ...plain, line: { color: color(role), width: 1.5 }, marker: { color: color(role), size: 6 } };
}

function layout(given) {
  const axis = { gridcolor: color("grid"), zerolinecolor: color("grid"), linecolor: color("border"), automargin: true };
  return {
    ...given,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color("text-muted") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { t: 28, r: 12, b: 48, l: 56 },
    height: 300,
    xaxis: { ...axis, ...given.xaxis },
    yaxis: { ...axis, ...given.yaxis },
    shapes: (given.shapes || []).map((shape) => ({ ...shape, line: { ...shape.line, color: color("control") } })),
  };
}

/* As many labels of the axis as there is room for: on a phone they would lie over each other. */
const LABEL = 56;
function thinned(axis, width) {
  const step = Math.ceil(axis.tickvals.length / Math.max(2, Math.floor(width / LABEL)));
  const kept = (value, index) => index % step === 0;
  return { ...axis, tickangle: 0, tickvals: axis.tickvals.filter(kept), ticktext: axis.ticktext.filter(kept) };
}

function draw(root) {
  for (const element of root.querySelectorAll("[data-figure]")) {
    const figure = JSON.parse(document.getElementById(element.dataset.figure).textContent);
    const wanted = { responsive: true, displaylogo: false, displayModeBar: false };
    const xaxis = thinned(figure.layout.xaxis, element.clientWidth - 68);
    Plotly.react(element, figure.data.map(colored), layout({ ...figure.layout, xaxis }), wanted);
    element.removeAllListeners("plotly_click");
    element.on("plotly_click", ({ points }) => {
      const { links } = figure.data[points[0].curveNumber];
      if (links) location.assign(links[points[0].pointNumber]);
    });
  }
}

draw(document);
document.addEventListener("htmx:afterSwap", (event) => draw(event.target));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(document));
