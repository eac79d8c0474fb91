/* Plays a trial's recording, opened after the first failure: step by command, jump to a command. */
"use strict";

const place = document.querySelector("[data-replay]");
if (place) {
  const player = AsciinemaPlayer.create(place.dataset.replay, place.querySelector(".terminal"), {
    fit: "width",
    idleTimeLimit: 2,
    terminalFontFamily: "ui-monospace, monospace",
    preload: true,
    controls: true,
  });
  const controls = place.querySelector("[role=group]");
  const steps = [...document.querySelectorAll(".steps [data-step]")];
  let current = -1;

  function mark(step) {
    current = step;
    for (const each of steps) {
      if (Number(each.dataset.step) === step) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
    }
  }
  async function seek(step) {
    const wanted = Math.min(Math.max(step, 0), Number(place.dataset.steps) - 1);
    await player.pause();
    await player.seek({ marker: wanted });
    mark(wanted);
  }

  async function open(step) {
    // The output of a command is there when the next one begins.
    const isLast = step + 1 >= Number(place.dataset.steps);
    await player.seek(isLast ? "100%" : { marker: step + 1 });
    mark(step);
  }

  player.addEventListener("marker", ({ index }) => mark(index));

  const actions = {
    previous: () => seek(current - 1),
    next: () => seek(current + 1),
    seek: (button) => seek(Number(button.dataset.step)),
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) actions[button.dataset.do](button);
  });
  controls.hidden = false;
  open(Number(place.dataset.first));
}
