"use strict";
/* The replay: rebuilds every state of an episode from its inputs, in whole numbers (1/10,000 world unit), and draws it.
   Strings of models and configs only ever become text nodes. */
(() => {
  const UNIT = 10000;
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);

  // --- the game ---------------------------------------------------------------------------------------------------

  /** The number of the newest pipe that is at least `age` ticks old at `tick`, -1 where there is none. */
  const newest = (world, tick, age) => Math.max(Math.floor((tick - age - world.first_spawn) / world.interval), -1);
  /** How many pipes a bird that lives at `tick` has passed. */
  const passed = (world, tick) => newest(world, tick, world.pass_age) + 1;
  const pipeX = (world, number, tick) => world.world_w - (tick - world.first_spawn - number * world.interval) * world.speed;

  /** Survival score after `ticks` ticks survived, in thousandths. */
  function survival(ticks) {
    const ramped = Math.min(ticks, 80);
    return 1000 * ticks + 5 * (ramped * (ramped + 1) / 2 + 80 * (ticks - ramped));
  }

  /** The states [y, velocity] from `start` on, one more than there are taps. */
  function fly(world, taps, start = [0, 0]) {
    let [y, velocity] = start;
    const states = [[y, velocity]];
    for (const tap of taps) {
      velocity = tap === "T" ? world.jump : velocity + world.gravity;
      y += velocity;
      states.push([y, velocity]);
    }
    return states;
  }

  /** The pipes on screen at `tick` (which may lie between two ticks): {number, x, y, height}. */
  function visible(world, gaps, tick) {
    const whole = Math.floor(tick), pipes = [];
    for (let number = newest(world, whole, world.last_age + 1) + 1; number <= newest(world, whole, 0); number++) {
      const gap = gaps[number];
      if (gap) pipes.push({ number, x: pipeX(world, number, tick), y: gap[0], height: gap[1] });
    }
    return pipes;
  }

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  const opened = new Map();
  /** An episode with its body and states; null where there is no transcript. */
  async function open(episode) {
    if (!episode.body) return null;
    if (!opened.has(episode)) {
      const body = await unpack(episode.body);
      const world = data.worlds[episode.world], gaps = data.courses[episode.course];
      const states = fly(world, body.taps);
      const starts = [];
      let at = 0;
      for (const turn of body.turns) { starts.push(at); at += turn.ticks; }
      const ghost = body.ghost && { from: body.ghost.from, states: fly(world, body.ghost.taps, states[body.ghost.from]), taps: body.ghost.taps };
      opened.set(episode, { episode, body, world, gaps, states, starts, ghost });
      if (opened.size > 40) opened.delete(opened.keys().next().value);
    }
    return opened.get(episode);
  }

  const score = (flight, tick) => passed(flight.world, flight.episode.crashed && tick >= flight.episode.ticks ? flight.episode.ticks - 1 : tick);

  /** Index of the turn that was flown in the tick after `tick`; at the end, of the last one. */
  function turnAt(flight, tick) {
    let low = 0, high = flight.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (flight.starts[middle] <= tick) low = middle; else high = middle - 1;
    }
    while (low > 0 && flight.body.turns[low].ticks === 0) low--;
    return flight.starts.length ? low : -1;
  }

  function rewardAt(flight, tick) {
    const { episode, body } = flight, over = tick >= episode.ticks;
    const survived = over && episode.crashed ? episode.ticks - 1 : Math.min(tick, episode.ticks);
    const said = over ? body.turns : body.turns.slice(0, turnAt(flight, tick));
    const format = said.length ? said.reduce((sum, turn) => sum + (turn.format || 0), 0) / said.length : 0;
    return 2 * score(flight, tick) + 0.2 * survival(survived) / 1000 + 0.2 * format;
  }

  // --- drawing ----------------------------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colours = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["sky-top", "sky-low", "cloud", "hill", "hill-far", "ground", "ground-edge", "trail", "pipe-light", "pipe-mid", "pipe-dark",
      "bird", "bird-dark", "beak", "danger", "good", "warn", "accent", "line", "grid", "mute", "ink", "card", "planner"]) colours[name] = style.getPropertyValue("--" + name).trim();
  }

  function sized(canvas, height) {
    const width = canvas.clientWidth || 1, ratio = Math.min(devicePixelRatio || 1, 3);
    const w = Math.round(width * ratio), h = Math.round(height(width) * ratio);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; canvas.style.height = h / ratio + "px"; }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return [context, width, h / ratio];
  }

  function draw(lane, at, withGhost) {
    const { flight, canvas } = lane, { world, episode } = flight;
    const ground = 0.06 * world.world_h, tall = world.world_h + ground;
    const aspect = Math.min(Math.max(world.world_w / tall, 0.7), 2.6);
    const [c, width, height] = sized(canvas, (w) => Math.min(w / aspect, 820));
    const scale = Math.min(width / world.world_w, height / tall);
    const left = (width - world.world_w * scale) / 2, top = (height - tall * scale) / 2;
    const X = (x) => left + x * scale, Y = (y) => top + (world.world_h / 2 - y) * scale;
    const floor = Y(-world.world_h / 2), sight = world.world_w * scale, moved = at * world.speed * scale;

    const sky = c.createLinearGradient(0, top, 0, floor);
    sky.addColorStop(0, colours["sky-top"]); sky.addColorStop(1, colours["sky-low"]);
    c.fillStyle = sky; c.fillRect(0, 0, width, height);
    c.save(); c.beginPath(); c.rect(left, top, sight, tall * scale); c.clip();
    scenery(c, left, top, sight, floor, moved);
    for (const pipe of visible(world, flight.gaps, at)) drawPipe(c, X, Y, floor, top, scale, world, pipe);

    c.fillStyle = colours.ground; c.fillRect(left, floor, sight, ground * scale);
    c.fillStyle = colours["ground-edge"]; c.fillRect(left, floor, sight, Math.max(3, ground * scale * 0.22));
    c.strokeStyle = "#0000001f"; c.lineWidth = 2; c.beginPath();
    for (let x = left - 24 - moved % 24; x < left + sight + 24; x += 24) { c.moveTo(x + 10, floor + ground * scale * 0.3); c.lineTo(x, floor + ground * scale); }
    c.stroke();
    c.fillStyle = colours.danger; c.globalAlpha = 0.5; c.fillRect(left, top, sight, 2); c.globalAlpha = 1;

    const size = Math.max(world.radius * scale, 0.026 * world.world_h * scale);
    const place = (states, from, tick) => {
      const last = from + states.length - 1, when = Math.min(Math.max(tick, from), last), before = Math.floor(when), share = when - before;
      const [y, v] = states[before - from], after = states[Math.min(before + 1, last) - from];
      return { x: world.bird_x - (tick - when) * world.speed, y: y + (after[0] - y) * share, v, over: tick > last };
    };
    const lost = flight.body.blunder ? flight.body.blunder.tick : Infinity;
    trail(c, X, Y, world, flight.states, 0, flight.body.taps, at, (tick) => tick > lost ? colours.danger : colours.trail, 0.75);
    const ghost = withGhost && flight.ghost && at >= flight.ghost.from ? flight.ghost : null;
    if (ghost) {
      trail(c, X, Y, world, ghost.states, ghost.from, ghost.taps, at, () => colours.planner, 0.9);
      const spot = place(ghost.states, ghost.from, at);
      if (!spot.over) { c.globalAlpha = 0.55; bird(c, X(spot.x), Y(spot.y), size, -spot.v / world.jump, "#ffffff", colours.planner, false); c.globalAlpha = 1; }
    }
    const spot = place(flight.states, 0, at), dead = episode.crashed && at >= episode.ticks;
    bird(c, X(spot.x), Y(spot.y), size, dead ? 1.4 : -spot.v / world.jump, dead ? "#c9c4b5" : colours.bird, dead ? "#9a927c" : colours["bird-dark"], dead);
    c.strokeStyle = dead ? colours.danger : "#fff"; c.lineWidth = 1.5;
    c.beginPath(); c.arc(X(spot.x), Y(spot.y), Math.max(world.radius * scale, 1.5), 0, 7); c.stroke();
    c.restore();

    c.font = "700 " + Math.round(Math.min(34, 16 + sight / 40)) + "px ui-sans-serif, system-ui, sans-serif"; c.textAlign = "center"; c.textBaseline = "top";
    c.lineWidth = 5; c.lineJoin = "round"; c.strokeStyle = "#1c2429b0"; c.fillStyle = "#fff";
    const points = String(score(flight, Math.floor(at)));
    c.strokeText(points, width / 2, top + 12); c.fillText(points, width / 2, top + 12);
  }

  function scenery(c, left, top, sight, floor, moved) {
    const high = floor - top;
    const far = (share, amount, period) => {
      const shift = moved * share % period;
      c.beginPath(); c.moveTo(left, floor);
      for (let x = 0; x <= sight + 8; x += 8) {
        const p = (x + shift) / period * 2 * Math.PI;
        c.lineTo(left + x, floor - high * amount * (1 + 0.35 * Math.sin(p) + 0.22 * Math.sin(2 * p + 1)));
      }
      c.lineTo(left + sight, floor); c.fill();
    };
    c.fillStyle = colours["hill-far"]; far(0.08, 0.2, 620);
    c.fillStyle = colours.hill; far(0.18, 0.11, 380);
    c.fillStyle = colours.cloud; c.globalAlpha = dark.matches ? 0.35 : 0.8;
    for (let n = 0; n < 6; n++) {
      const span = sight + 240, x = left + ((n * 0.618 * span + (n % 3) * 60 - moved * (0.05 + n % 3 * 0.02)) % span + span) % span - 120, y = top + high * (0.1 + 0.09 * ((n * 5) % 4)), r = high * (0.022 + 0.006 * (n % 3));
      c.beginPath();
      for (const [dx, dy, k] of [[-1.6, 0.3, 0.8], [-0.5, -0.3, 1.15], [0.8, -0.1, 1], [1.9, 0.35, 0.7]]) { c.moveTo(x + dx * r + k * r, y + dy * r); c.arc(x + dx * r, y + dy * r, k * r, 0, 7); }
      c.rect(x - 1.7 * r, y + 0.2 * r, 3.7 * r, 0.85 * r); c.fill();
    }
    c.globalAlpha = 1;
  }

  function drawPipe(c, X, Y, floor, top, scale, world, pipe) {
    const half = world.width / 2 * scale, x = X(pipe.x), inset = Math.min(half * 0.12, 6), cap = Math.min(half * 0.7, 18);
    const high = Y(pipe.y + pipe.height / 2), low = Y(pipe.y - pipe.height / 2);
    const paint = c.createLinearGradient(x - half, 0, x + half, 0);
    paint.addColorStop(0, colours["pipe-dark"]); paint.addColorStop(0.18, colours["pipe-mid"]); paint.addColorStop(0.38, colours["pipe-light"]); paint.addColorStop(0.7, colours["pipe-mid"]); paint.addColorStop(1, colours["pipe-dark"]);
    c.fillStyle = paint; c.strokeStyle = colours["pipe-dark"]; c.lineWidth = 1;
    for (const [from, to, edge] of [[top, high, high - cap], [low, floor, low]]) {
      if (to <= from) continue;
      c.fillRect(x - half + inset, from, 2 * (half - inset), to - from);
      c.fillRect(x - half, edge, 2 * half, cap); c.strokeRect(x - half + 0.5, edge + 0.5, 2 * half - 1, cap - 1);
    }
  }

  function trail(c, X, Y, world, states, from, taps, at, colour, alpha) {
    const last = Math.min(Math.floor(at), from + states.length - 1);
    const first = Math.max(from, Math.ceil(at - world.bird_x / world.speed));
    for (let tick = first; tick <= last; tick++) {
      const tap = taps[tick - from] === "T" && tick < at;
      c.globalAlpha = alpha * (0.35 + 0.65 * (tick - first) / Math.max(last - first, 1)); c.fillStyle = colour(tick);
      c.beginPath(); c.arc(X(world.bird_x - (at - tick) * world.speed), Y(states[tick - from][0]), tap ? 3.4 : 1.8, 0, 7); c.fill();
    }
    c.globalAlpha = 1;
  }

  function bird(c, x, y, r, tilt, body, shade, dead) {
    c.save(); c.translate(x, y); c.rotate(Math.max(-0.6, Math.min(1.4, tilt * 0.55)));
    c.fillStyle = body; c.strokeStyle = "#3b2a0f"; c.lineWidth = Math.max(1, r * 0.11);
    c.beginPath(); c.ellipse(0, 0, r * 1.18, r, 0, 0, 7); c.fill(); c.stroke();
    c.fillStyle = colours.beak; c.beginPath(); c.moveTo(r * 0.95, -r * 0.15); c.lineTo(r * 1.75, r * 0.12); c.lineTo(r * 0.9, r * 0.45); c.closePath(); c.fill(); c.stroke();
    c.fillStyle = "#fff"; c.beginPath(); c.arc(r * 0.52, -r * 0.36, r * 0.36, 0, 7); c.fill(); c.stroke();
    c.fillStyle = "#20180a"; c.beginPath();
    if (dead) { c.moveTo(r * 0.36, -r * 0.52); c.lineTo(r * 0.7, -r * 0.2); c.moveTo(r * 0.7, -r * 0.52); c.lineTo(r * 0.36, -r * 0.2); c.stroke(); }
    else { c.arc(r * 0.64, -r * 0.34, r * 0.14, 0, 7); c.fill(); }
    c.fillStyle = shade; c.beginPath(); c.ellipse(-r * 0.42, r * (tilt < 0 ? 0.28 : 0.02), r * 0.56, r * 0.34, tilt < 0 ? 0.35 : -0.35, 0, 7); c.fill(); c.stroke();
    c.restore();
  }

  function drawTrack() {
    const flight = active();
    if (!flight) return;
    const [c, width, height] = sized($("track"), () => 26);
    const inset = 8, px = (tick) => inset + (width - 2 * inset) * tick / Math.max(player.end, 1), { body, episode, world } = flight;
    const bar = (from, to, colour, y, h) => { c.fillStyle = colour; c.fillRect(px(from), y, Math.max(px(to) - px(from), 1.5), h); };
    c.clearRect(0, 0, width, height);
    bar(0, player.end, colours.grid, 9, 10);
    bar(0, episode.ticks, colours.line, 9, 10);
    for (let tick = 0; tick < body.forced.length; tick++) if (body.forced[tick] !== " ") bar(tick, tick + 1, colours.accent, 15, 4);
    body.turns.forEach((turn, index) => { if (turn.status !== "ok") bar(flight.starts[index], flight.starts[index] + Math.max(turn.ticks, 1), colours.warn, 9, 5); });
    if (body.blunder) bar(body.blunder.tick, episode.ticks, colours.danger, 9, 10);
    for (let pipe = 0, tick; (tick = world.first_spawn + pipe * world.interval + world.pass_age) < episode.ticks; pipe++) { c.fillStyle = colours.good; c.beginPath(); c.arc(px(tick), 4, 3, 0, 7); c.fill(); }
    if (body.blunder) {
      const x = px(body.blunder.tick);
      c.fillStyle = colours.danger; c.fillRect(x - 1, 0, 2, 26); c.beginPath(); c.moveTo(x, 0); c.lineTo(x + 10, 4); c.lineTo(x, 8); c.fill();
    }
    c.fillStyle = colours.ink; c.fillRect(px(player.at) - 1, 5, 2, 18);
  }

  // --- the player -------------------------------------------------------------------------------------------------

  const player = { lanes: [], chosen: 0, at: 0, end: 1, playing: false, episode: null, since: 0, asked: 0 };
  const active = () => player.lanes[player.chosen] && player.lanes[player.chosen].flight;
  const make = (tag, text, name) => { const element = document.createElement(tag); if (text !== undefined) element.textContent = text; if (name) element.className = name; return element; };
  const decimal = (units) => (units / UNIT).toFixed(units % (UNIT / 100) ? 4 : 2);
  const title = (episode) => (data.runs.length > 1 ? data.runs[episode.run] + " · " : "") + "Episode " + episode.index + (episode.seed === undefined ? "" : " · seed " + episode.seed);
  const short = { tick_limit: "tick limit", pipe: "pipe", floor: "floor", ceiling: "ceiling", malformed: "malformed replies", context: "out of context", aborted: "stopped early", error: "error" };
  const ended = (episode) => short[episode.end] || episode.end;

  async function show(episode, { tick, race = false } = {}) {
    const asked = ++player.asked;
    pause();
    const rivals = race && episode.task !== undefined ? data.episodes.filter((other) => other.task === episode.task).slice(0, 6) : [episode];
    if (!rivals.includes(episode)) rivals[rivals.length - 1] = episode;
    let flights;
    try { flights = await Promise.all(rivals.map(open)); } catch (error) { notice("This browser cannot unpack the transcript: " + error.message); return; }
    if (asked !== player.asked) return;
    player.episode = episode; player.race = rivals.length > 1;
    const same = data.episodes.filter((other) => episode.task !== undefined && other.task === episode.task).length;
    $("race").hidden = same < 2; $("race").setAttribute("aria-pressed", player.race); $("player").classList.toggle("racing", player.race);
    $("choice").value = String(data.episodes.indexOf(episode));
    for (const row of document.querySelectorAll("tr.current")) row.classList.remove("current");
    const row = $("row-" + data.episodes.indexOf(episode));
    if (row) row.classList.add("current");
    if (flights[0] === null) {
      notice(title(episode) + " has no transcript: " + episode.problem + (episode.error ? ". It ended by an error: " + episode.error : "")); player.lanes = [];
      return;
    }
    if (episode.error) notice("This rollout ended by an error and is no score: " + episode.error); else $("player-notice").hidden = true;
    $("player").hidden = false;
    player.lanes = flights.map((flight) => ({ flight }));
    player.chosen = rivals.indexOf(episode);
    player.end = Math.max(...flights.map((flight) => Math.max(flight.episode.ticks, flight.ghost ? flight.ghost.from + flight.ghost.states.length - 1 : 0)), 1);
    $("lanes").replaceChildren(...player.lanes.map((lane, index) => {
      const box = make("figure", undefined, "lane" + (player.race ? "" : " solo"));
      lane.canvas = make("canvas"); lane.canvas.setAttribute("role", "img"); lane.canvas.setAttribute("aria-label", title(lane.flight.episode));
      lane.canvas.addEventListener("click", () => { if (player.chosen === index) toggle(); else { player.chosen = index; render(); } });
      box.append(lane.canvas, make("figcaption", title(lane.flight.episode) + " · " + ended(lane.flight.episode) + " at tick " + lane.flight.episode.ticks + " · reward " + lane.flight.episode.reward.toFixed(2)));
      return box;
    }));
    $("scrub").max = player.end;
    $("turning").disabled = !active().body.blunder;
    $("ghost-label").hidden = !active().ghost;
    document.querySelector(".ghost-legend").hidden = !active().ghost;
    const video = episode.video;
    $("video-box").hidden = !video;
    if (video) $("video").setAttribute("href", video.split("/").map(encodeURIComponent).join("/"));
    seek(tick === undefined ? 0 : tick);
  }

  function notice(text) {
    $("player").hidden = true; $("player-notice").hidden = false; $("player-notice").textContent = text;
    if (player.episode && player.episode.body) $("player").hidden = false;
  }

  function seek(tick) {
    player.at = Math.min(Math.max(tick, 0), player.end);
    render();
  }

  function render() {
    const flight = active();
    if (!flight) return;
    const tick = Math.floor(player.at);
    for (const lane of player.lanes) draw(lane, player.at, $("ghost").checked);
    drawTrack();
    $("scrub").value = tick;
    $("scrub").setAttribute("aria-valuetext", "tick " + tick + " of " + flight.episode.ticks);
    if (player.shown !== flight || player.shownTick !== tick) { player.shown = flight; player.shownTick = tick; describe(flight, tick); }
    if (!player.playing) remember(tick);
  }

  function describe(flight, tick) {
    const { episode, body, world, states } = flight;
    $("clock").replaceChildren("Tick " + Math.min(tick, episode.ticks) + " ", make("small", "of " + episode.ticks + (tick > episode.ticks ? " + " + (tick - episode.ticks) : "")));
    verdict(flight, tick);
    const index = turnAt(flight, Math.min(tick, episode.ticks)), turn = body.turns[index], over = tick >= episode.ticks;
    $("turn-title").textContent = turn ? (over ? "After the last turn" : "Turn " + index) : "No turns";
    $("status").textContent = turn ? turn.status : ""; $("status").className = "pill " + (turn && turn.status === "ok" ? "ok" : "bad");
    const actions = turn ? (turn.actions.length === 1 ? (turn.actions === "T" ? "TAP" : "NOOP") : Array.from(turn.actions, (mark) => mark === "T" ? "TAP" : "·").join(" ")) : "";
    $("action").textContent = actions; $("action").className = "pill" + (actions.includes("TAP") ? " tap" : "");

    const now = Math.min(tick, episode.ticks), [y, v] = states[now];
    const next = visible(world, flight.gaps, now).find((pipe) => pipe.number >= score(flight, now));
    const facts = [["birdY", decimal(y)], ["velY", decimal(v)]];
    if (next) facts.push(["Next gap", decimal(next.y - next.height / 2) + " to " + decimal(next.y + next.height / 2)], ["Pipe", next.number + " at x " + decimal(next.x)]);
    facts.push(["Pipes passed", String(score(flight, now))], ["Reward so far", rewardAt(flight, now).toFixed(2)]);
    if (turn && turn.prompt_tokens !== undefined) facts.push(["Prompt tokens", String(turn.prompt_tokens)]);
    if (turn && turn.completion_tokens !== undefined) facts.push(["Reply tokens", turn.completion_tokens + (turn.cut ? " (cut)" : "")]);
    if (turn && turn.seconds !== undefined) facts.push(["Seconds", turn.seconds.toFixed(2)]);
    if (turn && turn.waited) facts.push(["Waited", turn.waited + " ticks"]);
    $("facts").replaceChildren(...facts.map(([name, value]) => { const pair = make("div"); pair.append(make("dt", name), make("dd", value)); return pair; }));

    const reply = turn && turn.reply !== undefined ? turn.reply : null, thought = turn ? turn.thought : undefined;
    const inside = Array.isArray(thought);
    words($("thought"), inside ? reply.substr(thought[0], thought[1]) : thought, turn ? "No thought in this reply." : "Nothing was said.");
    $("reasoning-box").hidden = !(turn && turn.reasoning);
    words($("reasoning"), turn && turn.reasoning, "");
    words($("reply"), reply, turn && reply === null ? "A key was pressed; nothing was said." : "The reply is empty.");
    if (reply && inside) mark($("reply"), reply, thought);
    $("differences-box").hidden = !body.differences.length;
    $("differences").replaceChildren(...body.differences.slice(0, 20).map((line) => make("li", line)));
  }

  function words(element, text, none) {
    if (text) element.textContent = text; else element.replaceChildren(make("span", none, "none"));
  }

  /** Shows where in the raw reply the thought stands, and hides nothing of it. */
  function mark(element, reply, [start, length]) {
    element.replaceChildren(reply.slice(0, start), make("mark", reply.slice(start, start + length)), reply.slice(start + length));
  }

  function verdict(flight, tick) {
    const { episode, body } = flight, blunder = body.blunder, death = body.death;
    let look = "", lead, rest;
    const name = (tap) => tap ? "a TAP" : "holding", large = (text) => text[0].toUpperCase() + text.slice(1);
    if (tick > episode.ticks) [look, lead, rest] = ["free", "The episode is over.", "Only the ghost flies on."];
    else if (tick === episode.ticks && death) {
      const far = Math.abs(death.miss) / UNIT, side = death.miss > 0 ? "above" : "below";
      const where = { pipe: "Hit pipe " + death.pipe + ", " + far.toFixed(2) + " " + side + " its gap.", floor: "Hit the floor.", ceiling: "Hit the ceiling." }[death.reason];
      [look, lead, rest] = ["doomed", where, blunder ? (blunder.doomed ? "It had been doomed for " + blunder.doomed + " ticks." : "One tick earlier it could still be saved.") : "No bird gets further on this course."];
    } else if (tick === episode.ticks) [look, lead, rest] = [blunder ? "doomed" : "free", episode.end === "tick_limit" ? "Reached the tick limit alive." : "The episode stopped here: " + ended(episode) + ".", blunder ? "Nothing could have saved the bird any more." : ""];
    else if (blunder && tick === blunder.tick) {
      const turn = blunder.turn === null ? null : body.turns[blunder.turn];
      const why = turn && turn.status !== "ok" ? " The reply was " + turn.status + ", so it flew as no-op." : blunder.turn !== null && flight.starts[blunder.turn] !== tick && turn.actions.length === 1 ? " It was asked for at tick " + flight.starts[blunder.turn] + "." : "";
      [look, lead, rest] = ["turning", "Point of no return.", large(name(blunder.tap)) + " lost the game here; " + name(!blunder.tap) + " would have lived." + why];
    } else if (blunder && tick > blunder.tick) {
      const left = episode.ticks - tick;
      [look, lead, rest] = ["doomed", "Doomed.", "Nothing can save the bird any more" + (death ? "; it dies in " + left + (left === 1 ? " tick." : " ticks.") : ".")];
    } else if (body.forced[tick] === "T") [look, lead, rest] = ["forced", "Only TAP lives here.", "Without it, the next tick is past the point of no return."];
    else if (body.forced[tick] === ".") [look, lead, rest] = ["forced", "Only holding lives here.", "A TAP would be past the point of no return; without one there are " + body.margins[tick] + " ticks to spare."];
    else {
      const spare = body.margins[tick];
      [look, lead, rest] = ["free", "Both actions live.", spare < 0 ? "" : tick + spare >= episode.horizon ? "No further TAP is needed." : "The bird can go " + spare + (spare === 1 ? " tick" : " ticks") + " without a TAP."];
    }
    $("verdict").className = "verdict " + look;
    $("verdict").replaceChildren(make("b", lead), " " + rest);
  }

  function frame(time) {
    if (!player.playing) return;
    const rate = Number($("speed").value);
    player.at = Math.min(player.at + Math.min(time - player.since, 250) / 1000 * rate, player.end);
    player.since = time;
    if (player.at >= player.end) pause();
    render();
    if (player.playing) requestAnimationFrame(frame);
  }

  function play() {
    if (!active()) return;
    if (player.at >= player.end) player.at = 0;
    player.playing = true; $("play").classList.add("playing"); $("play").setAttribute("aria-label", "Pause");
    requestAnimationFrame((time) => { player.since = time; frame(time); });
  }
  function pause() {
    if (player.playing) player.at = Math.floor(player.at);
    player.playing = false; $("play").classList.remove("playing"); $("play").setAttribute("aria-label", "Play");
  }
  const toggle = () => { if (player.playing) { pause(); render(); } else play(); };
  const step = (ticks) => { pause(); seek(Math.floor(player.at) + ticks); };
  const turning = () => { const flight = active(); if (flight && flight.body.blunder) { pause(); seek(flight.body.blunder.tick); } };

  // --- links ------------------------------------------------------------------------------------------------------

  const link = (tick) => "#" + (data.runs.length > 1 ? "run=" + player.episode.run + "&" : "") + "episode=" + player.episode.index + "&tick=" + tick + (player.race ? "&race=1" : "");
  function remember(tick) {
    clearTimeout(player.remembering);
    player.remembering = setTimeout(() => { if (player.touched) try { history.replaceState(null, "", link(tick)); } catch { /* a page without an address */ } }, 150);
  }
  function follow(hash) {
    const wanted = new URLSearchParams(hash.slice(1));
    if (!wanted.has("episode")) return false;
    const run = Number(wanted.get("run") || 0), index = Number(wanted.get("episode"));
    const episode = data.episodes.find((one) => one.index === index && (one.run === run || data.runs.length === 1));
    if (!episode) { pause(); player.lanes = []; player.episode = null; notice("There is no episode " + wanted.get("episode") + " in this report."); ready(); return true; }
    const tick = Number(wanted.get("tick"));
    player.touched = true;
    show(episode, { tick: Number.isFinite(tick) ? Math.floor(tick) : 0, race: wanted.get("race") === "1" }).then(ready);
    $("replay").scrollIntoView();
    return true;
  }
  function ready() { document.documentElement.dataset.ready = Math.round(performance.now()); }

  async function copy() {
    pause(); render();
    const url = location.href.split("#")[0] + link(Math.floor(player.at));
    player.touched = true; history.replaceState(null, "", link(Math.floor(player.at)));
    let told = "Copied";
    try { await navigator.clipboard.writeText(url); } catch { told = "It is in the address bar"; }
    $("link").textContent = told; setTimeout(() => { $("link").textContent = "Copy link"; }, 1600);
  }

  function other(steps) {
    const at = data.episodes.indexOf(player.episode) + steps;
    if (data.episodes[at]) { player.touched = true; show(data.episodes[at]); }
  }

  // --- the table --------------------------------------------------------------------------------------------------

  function table() {
    const rows = $("rows");
    if (!rows) return;
    const original = Array.from(rows.rows);
    for (const button of document.querySelectorAll("#episodes thead button")) button.addEventListener("click", () => {
      const head = button.parentElement, column = head.cellIndex, up = head.getAttribute("aria-sort") !== "ascending";
      for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const order = (one, two) => {
        const a = key(one), b = key(two);
        if (a === "" || b === "") return (a === "") - (b === "");   // what is not known comes last, either way
        const numbers = Number(a) - Number(b);
        return (Number.isNaN(numbers) ? (a < b ? -1 : a > b ? 1 : 0) : numbers) * (up ? 1 : -1);
      };
      rows.replaceChildren(...original.slice().sort(order));
    });
    for (const button of document.querySelectorAll(".filters button")) button.addEventListener("click", () => {
      for (const each of document.querySelectorAll(".filters button")) each.setAttribute("aria-pressed", each === button);
      let shown = 0;
      for (const row of original) { row.hidden = button.dataset.end !== "" && row.dataset.end !== button.dataset.end; shown += !row.hidden; }
      $("shown").textContent = shown + " of " + original.length + " shown";
    });
    rows.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row && !event.target.closest("a")) location.hash = row.querySelector("a").getAttribute("href");
    });
  }

  // --- start ------------------------------------------------------------------------------------------------------

  readColours();
  table();
  const groups = new Map();
  data.episodes.forEach((episode, index) => {
    if (!groups.has(episode.run)) {
      const group = data.runs.length > 1 ? make("optgroup") : $("choice");
      if (data.runs.length > 1) { group.label = data.runs[episode.run]; $("choice").append(group); }
      groups.set(episode.run, group);
    }
    const option = make("option", "Episode " + episode.index + (episode.seed === undefined ? "" : " · seed " + episode.seed) + " · " + ended(episode) + (episode.ticks === undefined ? "" : " at tick " + episode.ticks));
    option.value = index;
    groups.get(episode.run).append(option);
  });
  const touch = (action) => () => { player.touched = true; action(); };
  $("choice").addEventListener("change", touch(() => show(data.episodes[Number($("choice").value)])));
  $("previous").addEventListener("click", () => other(-1)); $("next").addEventListener("click", () => other(1));
  $("race").addEventListener("click", touch(() => show(player.episode, { tick: Math.floor(player.at), race: !player.race })));
  $("first").addEventListener("click", touch(() => step(-Infinity))); $("last").addEventListener("click", touch(() => { pause(); seek(active() ? active().episode.ticks : 0); }));
  $("back").addEventListener("click", touch(() => step(-1))); $("forward").addEventListener("click", touch(() => step(1)));
  $("play").addEventListener("click", touch(toggle)); $("turning").addEventListener("click", touch(turning));
  $("scrub").addEventListener("input", touch(() => { pause(); seek(Number($("scrub").value)); }));
  $("ghost").addEventListener("change", render); $("link").addEventListener("click", copy);
  const keys = {
    " ": toggle, ArrowLeft: (event) => step(event.shiftKey ? -10 : -1), ArrowRight: (event) => step(event.shiftKey ? 10 : 1), Home: () => step(-Infinity),
    End: () => { pause(); seek(active().episode.ticks); }, n: turning, g: () => { $("ghost").checked = !$("ghost").checked; render(); },
    j: () => other(-1), k: () => other(1), l: copy, "?": () => $("help").showModal(),
  };
  addEventListener("keydown", (event) => {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, inside = event.target.closest("select, input, textarea, dialog, pre, .scroll");
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[key] || $("help").open) return;
    if (inside && !(inside.id === "scrub" && key.length === 1) && !(inside.id === "ghost" && key !== " ")) return;
    if (key === " " && event.target.closest("button, a, summary")) return;
    if (!active() && key !== "j" && key !== "k" && key !== "?") return;
    event.preventDefault(); player.touched = true; keys[key](event);
  });
  addEventListener("hashchange", () => follow(location.hash));
  new ResizeObserver(render).observe($("player"));
  dark.addEventListener("change", () => { readColours(); render(); });

  /** For tests and the curious: what the page makes of an episode, tick by tick. */
  globalThis.flappybird = {
    player,
    async trajectory(position) {
      const flight = await open(data.episodes[position]);
      return flight && flight.states.map(([y, velocity], tick) => ({
        tick, y, velocity, score: score(flight, tick), reward: rewardAt(flight, tick), pipes: visible(flight.world, flight.gaps, tick).map((pipe) => [pipe.x, pipe.y, pipe.height]),
      }));
    },
  };

  if (!data.episodes.length) { notice("There are no episodes in this report."); ready(); }
  else if (!follow(location.hash)) {
    const telling = data.episodes.filter((episode) => episode.body && !episode.error && episode.lost !== null);
    const first = telling.reduce((best, episode) => !best || episode.reward > best.reward ? episode : best, null) || data.episodes.find((episode) => episode.body) || data.episodes[0];
    show(first, { tick: first.lost || 0 }).then(ready);
  }
})();
