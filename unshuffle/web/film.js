// Runs once for each film's place on the page; `element` is that place, and `watch` tells of a new film in it.
const PLAY = '<svg viewBox="0 0 12 12"><path d="M2.5 1v10l8-5z"/></svg>';
const PAUSE = '<svg viewBox="0 0 12 12"><path d="M2 1h3v10H2zM7 1h3v10H7z"/></svg>';
let timer = null;

const film = () => element.querySelector(".film");

function show(step) {
  const root = film();
  for (const [slot, markup] of Object.entries(root.frames[step]))
    root.querySelector(`[data-slot="${slot}"]`).innerHTML = markup;
  root.querySelector("input").value = step;
  root.dataset.step = step;
}

function stop() {
  clearInterval(timer);
  timer = null;
  const button = film()?.querySelector("button");
  if (button) { button.innerHTML = PLAY; button.ariaLabel = "Play"; }
}

function play() {
  const root = film(), last = root.frames.length - 1;
  if (Number(root.dataset.step) >= last) show(0);
  const button = root.querySelector("button");
  button.innerHTML = PAUSE;
  button.ariaLabel = "Pause";
  timer = setInterval(() => {
    const step = Number(root.dataset.step) + 1;
    if (step > last || film() !== root) return stop();
    show(step);
    if (step === last) stop();
  }, Math.min(400, 2600 / last));
}

function start() {
  stop();
  const root = film();
  if (!root) return;
  root.frames = JSON.parse(root.dataset.frames);
  const still = !("plays" in root.dataset) || matchMedia("(prefers-reduced-motion: reduce)").matches;
  show(still ? root.frames.length - 1 : 0);
  if (!still && root.frames.length > 1) play();
}

element.addEventListener("input", (event) => {
  if (!event.target.matches(".film input")) return;
  stop();
  show(Number(event.target.value));
});
element.addEventListener("click", (event) => {
  if (event.target.closest(".film button")) timer === null ? play() : stop();
});
watch("value", start);
start();
