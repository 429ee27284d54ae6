/* The timeline: what happened when; its marks can be clicked. */
const INSET = 8;
const trackX = (tick, width) => INSET + (width - 2 * INSET) * tick / Math.max(player.end, 1);

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["danger", "good", "warn", "accent", "line", "grid", "ink"]) colours[name] = style.getPropertyValue("--" + name).trim();
}

/** What can be clicked: [tick, what it is], the most telling first. */
function marksOf(flight) {
  if (flight.marks) return flight.marks;
  const { body, world, episode } = flight, marks = [];
  if (body.blunder) marks.push([body.blunder.tick, "point of no return"]);
  body.turns.forEach((turn, index) => { if (turn.status !== "ok") marks.push([flight.starts[index], turn.status + " reply"]); });
  for (let pipe = 0, tick; (tick = world.first_spawn + pipe * world.interval + world.pass_age) < episode.ticks; pipe++) marks.push([tick, ordinal(pipe + 1) + " pipe passed"]);
  if (episode.took) marks.push([episode.took, "you took the stick"]);
  marks.push([episode.ticks, ended(episode)]);
  return (flight.marks = marks);
}

function drawTrack() {
  const flight = active(), canvas = $("track");
  if (!flight) return;
  const width = canvas.parentElement.clientWidth - 4 || 1, c = sized(canvas, width, 26), px = (tick) => trackX(tick, width), { body, episode } = flight;
  const bar = (from, to, colour, y, h) => { c.fillStyle = colour; c.fillRect(px(from), y, Math.max(px(to) - px(from), 1.5), h); };
  c.clearRect(0, 0, width, 26);
  bar(0, player.end, colours.grid, 9, 10);
  bar(0, episode.ticks, colours.line, 9, 10);
  for (let tick = 0; tick < body.forced.length; tick++) if (body.forced[tick] !== " ") bar(tick, tick + 1, colours.accent, 15, 4);
  body.turns.forEach((turn, index) => { if (turn.status !== "ok") bar(flight.starts[index], flight.starts[index] + Math.max(turn.ticks, 1), colours.warn, 9, 5); });
  if (body.blunder) bar(body.blunder.tick, episode.ticks, colours.danger, 9, 10);
  for (const [tick, what] of marksOf(flight)) if (what.endsWith("passed")) { c.fillStyle = colours.good; c.beginPath(); c.arc(px(tick), 4, 3, 0, 7); c.fill(); }
  for (const tick of [body.blunder && body.blunder.tick, episode.took]) if (tick) {
    const x = px(tick);
    c.fillStyle = tick === episode.took ? colours.accent : colours.danger; c.fillRect(x - 1, 0, 2, 26); c.beginPath(); c.moveTo(x, 0); c.lineTo(x + 10, 4); c.lineTo(x, 8); c.fill();
  }
  c.fillStyle = colours.ink; c.fillRect(px(player.at) - 1, 5, 2, 18);
}

/** [tick, what stands there] below the pointer: the nearest mark within a few pixels, else the tick itself. */
function below(event) {
  const flight = active(), box = $("track").getBoundingClientRect(), x = event.clientX - box.left;
  const near = marksOf(flight).map(([tick, what]) => [Math.abs(trackX(tick, box.width) - x), tick, what]).filter(([far]) => far <= 7).sort((a, b) => a[0] - b[0])[0];
  if (near) return [near[1], "tick " + near[1] + ": " + near[2]];
  const tick = Math.round(Math.min(Math.max((x - INSET) / (box.width - 2 * INSET), 0), 1) * player.end);
  return [tick, "tick " + tick];
}

function timeline() {
  $("track").addEventListener("click", (event) => { if (!active() || player.stick) return; player.touched = true; pause(); seek(below(event)[0]); });
  $("track").addEventListener("pointermove", (event) => {
    if (!active()) return;
    const tip = $("track-tip"), box = $("track").getBoundingClientRect();
    tip.textContent = below(event)[1]; tip.hidden = false;
    tip.style.left = Math.min(Math.max(event.clientX - box.left - tip.offsetWidth / 2, 0), Math.max(box.width - tip.offsetWidth, 0)) + "px";
  });
  $("track").addEventListener("pointerleave", () => { $("track-tip").hidden = true; });
}
