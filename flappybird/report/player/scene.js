/* The world as a picture: the same shapes and colours as in windows and videos (render/), at any size. */
const PAINT = {
  SKY: ["#4ea8de", "#caecf0"], CLOUD: "#f0f9fa", HILLS: ["#96cdc4", "#74ba96"], ROOF: "#345480", GRASS: ["#7ec850", "#6ab242"], GRASS_EDGE: "#4a7c32",
  SOIL: ["#dece94", "#ccb87c"], PIPE: [[0.28, "#ace264"], [0.74, "#7cba3c"], [1, "#5e962a"]], PIPE_EDGE: "#30541c",
  BODY: "#fac832", BELLY: "#fce48c", WING: "#fff4d6", BEAK: "#ee6c30", INK: "#3a2c28", WHITE: "#ffffff",
  GHOSTS: ["#5680f0", "#e25c96", "#9660dc", "#3ca096"], ALARM: "#e44a3e",
};

function sized(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio || 1, 3), w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  canvas.style.width = w / ratio + "px"; canvas.style.height = h / ratio + "px";
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Width over height of a world and the ground below it. */
const aspectOf = (world) => Math.min(Math.max(world.world_w / (1.06 * world.world_h), 0.6), 2.6);

/** Draws a flight at `at`, a tick or a moment between two, `width` pixels wide.
    others: more birds on the same course, {from, states, taps, plumage, name}. hint: text over the picture. */
function drawScene(canvas, flight, at, width, { others = [], live = null, hint = "" } = {}) {
  const { world, course, episode } = flight, ground = 0.06 * world.world_h, tall = world.world_h + ground;
  const height = width / aspectOf(world), c = sized(canvas, width, height), scale = Math.min(width / world.world_w, height / tall);
  const left = (width - world.world_w * scale) / 2, top = (height - tall * scale) / 2, sight = world.world_w * scale;
  const X = (x) => left + x * scale, Y = (y) => top + (world.world_h / 2 - y) * scale, floor = Y(-world.world_h / 2);

  const sky = c.createLinearGradient(0, top, 0, floor);
  sky.addColorStop(0, PAINT.SKY[0]); sky.addColorStop(1, PAINT.SKY[1]);
  c.globalAlpha = 1; c.fillStyle = sky; c.fillRect(0, 0, width, height);
  c.save(); c.beginPath(); c.rect(left, top, sight, tall * scale); c.clip();
  scenery(c, left, top, sight, floor);
  for (const pipe of visible(course, at)) drawPipe(c, X(pipe.x), Y(pipe.y + pipe.height / 2), Y(pipe.y - pipe.height / 2), world.width * scale, top, floor);
  grass(c, left, floor, sight, ground * scale, at * world.speed * scale);
  c.fillStyle = PAINT.ROOF; c.fillRect(left, top, sight, 2);

  const radius = Math.max(world.radius * scale, 2), lost = flight.body.blunder ? flight.body.blunder.tick : Infinity;
  for (const other of others) {
    if (at < other.from) continue;
    trail(c, X, Y, world, other.states, other.from, other.taps, at, () => PAINT.GHOSTS[other.plumage - 1]);
    const spot = placeOf(world, other.states, other.from, at);
    if (!spot.over) { c.globalAlpha = 0.65; bird(c, X(spot.x), Y(spot.y), radius, spot.v / world.jump, other.plumage); c.globalAlpha = 1; }
  }
  trail(c, X, Y, world, flight.states, 0, flight.body.taps, at, (tick) => tick > lost ? PAINT.ALARM : PAINT.WHITE);
  const spot = live || placeOf(world, flight.states, 0, at), dead = episode.crashed && at >= episode.ticks;
  bird(c, X(spot.x), Y(spot.y), radius, dead ? -2 : spot.v / world.jump, 0, dead);
  if (dead) { c.strokeStyle = PAINT.ALARM; c.lineWidth = Math.max(radius / 6, 1.5); c.beginPath(); c.arc(X(spot.x), Y(spot.y), radius + outline(radius) + 2, 0, 7); c.stroke(); }
  c.restore();

  const letters = Math.round(Math.min(34, 14 + sight / 40));
  write(c, String(score(flight, Math.floor(at))), width / 2, top + 8, letters);
  if (hint) write(c, hint, width / 2, top + height * 0.34, Math.max(Math.round(letters * 0.62), 13));
}

/** Where a bird is at a moment between two ticks; past its last tick it moves out of the picture with the world. */
function placeOf(world, states, from, tick) {
  const last = from + states.length - 1, when = Math.min(Math.max(tick, from), last), before = Math.floor(when);
  const [y, v] = states[before - from], after = states[Math.min(before + 1, last) - from];
  return { x: world.bird_x - (tick - when) * world.speed, y: y + (after[0] - y) * (when - before), v, over: tick > last };
}

function write(c, text, x, y, size) {
  c.font = "700 " + size + "px ui-sans-serif, system-ui, sans-serif"; c.textAlign = "center"; c.textBaseline = "top";
  c.lineWidth = Math.max(size / 6, 3); c.lineJoin = "round"; c.strokeStyle = PAINT.INK; c.fillStyle = PAINT.WHITE;
  for (const [index, line] of text.split("\n").entries()) { c.strokeText(line, x, y + index * size * 1.35); c.fillText(line, x, y + index * size * 1.35); }
}

function scenery(c, left, top, sight, floor) {
  const high = floor - top, unit = high / 20;
  const blob = (colour, x, y, wide, tall) => { c.fillStyle = colour; c.beginPath(); c.ellipse(x, y, wide, tall, 0, 0, 7); c.fill(); };
  for (const [at, low, reach] of [[0.04, 17.6, 4.2], [0.3, 18.2, 5], [0.62, 17.4, 4.6], [0.93, 18, 5.4]]) blob(PAINT.HILLS[0], left + at * sight, top + (low + reach / 2) * unit, reach * 1.6 * unit, reach * unit);
  for (const [at, reach] of [[0.16, 3.4], [0.46, 2.6], [0.78, 3.2], [1.02, 2.4]]) blob(PAINT.HILLS[1], left + at * sight, top + 20.4 * unit, reach * 1.9 * unit, reach * unit);
  for (const [at, y, wide] of [[0.13, 5.2, 2.6], [0.44, 9.4, 2], [0.66, 3.6, 3], [0.9, 8, 2.2]]) {
    for (const [shift, share] of [[-0.62, 0.55], [-0.1, 0.85], [0.5, 0.62]]) {
      const across = share * wide * unit;
      blob(PAINT.CLOUD, left + at * sight + shift * wide * unit, top + y * unit - 0.2 * across, 0.62 * across, 0.48 * across);
    }
    c.fillStyle = PAINT.CLOUD; c.beginPath();
    c.roundRect(left + at * sight - 1.1 * wide * unit, top + y * unit - 0.21 * wide * unit, 2.2 * wide * unit, 0.42 * wide * unit, 0.21 * wide * unit); c.fill();
  }
}

function grass(c, left, floor, sight, deep, moved) {
  const turf = deep * 0.45, stripe = Math.max(turf * 2, 8);
  c.fillStyle = PAINT.SOIL[0]; c.fillRect(left, floor, sight, deep);
  c.fillStyle = PAINT.SOIL[1]; c.fillRect(left, floor + turf, sight, Math.max(deep * 0.12, 1));
  c.fillStyle = PAINT.GRASS[0]; c.fillRect(left, floor, sight, turf);
  c.fillStyle = PAINT.GRASS[1]; c.beginPath();
  for (let x = left - stripe - moved % stripe; x < left + sight + stripe; x += stripe) { c.moveTo(x + stripe / 2, floor); c.lineTo(x + stripe, floor); c.lineTo(x + stripe / 2, floor + turf); c.lineTo(x, floor + turf); c.closePath(); }
  c.fill();
  c.fillStyle = PAINT.GRASS_EDGE; c.fillRect(left, floor, sight, Math.max(turf / 6, 1));
}

function drawPipe(c, x, high, low, wide, top, floor) {
  const inset = wide > 6 ? Math.max(wide / 16, 1) : 0, lip = Math.max(wide * 2 / 5, 2), edge = Math.max(wide / 24, 1);
  const tube = (from, across, y, tall, framed) => {
    let start = 0;
    for (const [share, colour] of PAINT.PIPE) { c.fillStyle = colour; c.fillRect(from + start * across, y, (share - start) * across + 0.5, tall); start = share; }
    c.fillStyle = PAINT.PIPE_EDGE; c.fillRect(from, y, edge, tall); c.fillRect(from + across - edge, y, edge, tall);
    if (framed) { c.fillRect(from, y, across, edge); c.fillRect(from, y + tall - edge, across, edge); }
  };
  for (const [from, to, mouth] of [[top, high, high - lip], [low, floor, low]]) {
    if (to <= from) continue;
    tube(x - wide / 2 + inset, wide - 2 * inset, from, to - from, false);
    tube(x - wide / 2, wide, mouth, lip, true);
  }
}

function trail(c, X, Y, world, states, from, taps, at, colour) {
  const last = Math.min(Math.floor(at), from + states.length - 1), first = Math.max(from, Math.ceil(at - world.bird_x / world.speed));
  for (let tick = first; tick <= last; tick++) {
    const tap = taps[tick - from] === "T" && tick < at;
    c.globalAlpha = 0.3 + 0.6 * (tick - first) / Math.max(last - first, 1); c.fillStyle = colour(tick);
    c.beginPath(); c.arc(X(world.bird_x - (at - tick) * world.speed), Y(states[tick - from][0]), tap ? 3.2 : 1.7, 0, 7); c.fill();
  }
  c.globalAlpha = 1;
}

/** How wide the outline of a bird is: around small ones it is what is seen. */
const outline = (radius) => Math.max(Math.round(radius / 5), radius >= 3 ? 2 : 1);

/** A bird: the circle that collides, an outline, and nothing beyond. rise: velocity in jumps, up is positive. */
function bird(c, x, y, radius, rise, plumage, dead) {
  const mixed = (colour) => "#" + [1, 3, 5].map((at) => Math.round(parseInt(colour.slice(at, at + 2), 16) * 0.55 + 255 * 0.45).toString(16).padStart(2, "0")).join("");
  const body = plumage ? PAINT.GHOSTS[(plumage - 1) % 4] : dead ? "#c9c4b5" : PAINT.BODY, belly = plumage ? mixed(body) : dead ? "#dedbd0" : PAINT.BELLY;
  const edge = outline(radius), thin = Math.max(edge / 3, 0.05 * radius) / radius, wing = rise > 0.4 ? 0 : rise > -0.4 ? 1 : 2;
  c.save(); c.translate(x, y); c.beginPath(); c.arc(0, 0, radius + edge, 0, 7); c.clip();
  c.rotate(-Math.max(-1, Math.min(0.42, rise * 0.42)));
  const oval = (colour, cx, cy, wide, tall, rim = 0) => {
    if (rim) oval(PAINT.INK, cx, cy, wide + rim, tall + rim);
    c.fillStyle = colour; c.beginPath(); c.ellipse(cx * radius, -cy * radius, wide * radius, tall * radius, 0, 0, 7); c.fill();
  };
  oval(body, 0, 0, 1, 1, edge / radius);
  oval(belly, -0.08, -0.48, 0.64, 0.38);
  oval(PAINT.BEAK, 0.66, -0.14, 0.32, 0.2, thin);
  oval(PAINT.WHITE, 0.34, 0.4, 0.33, 0.33, thin);
  if (dead) { c.strokeStyle = PAINT.INK; c.lineWidth = radius * 0.13; c.beginPath(); for (const s of [1, -1]) { c.moveTo(radius * 0.2, -radius * (0.4 + 0.16 * s)); c.lineTo(radius * 0.5, -radius * (0.4 - 0.16 * s)); } c.stroke(); }
  else oval(PAINT.INK, 0.46, 0.4, 0.15, 0.17);
  oval(PAINT.WING, -0.46, [-0.3, 0, 0.24][wing], 0.4, [0.3, 0.2, 0.27][wing], thin);
  c.restore();
}
