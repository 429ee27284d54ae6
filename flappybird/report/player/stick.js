/* Taking the stick: a person flies on from a tick of an episode, and what comes of it is an episode too. */
let landed = null;   // the last flight of a person, until another episode is opened

/** Gets ready to fly on from the tick that is shown; at the end of an episode, from its point of no return. */
function takeStick() {
  const base = landed ? landed.base : active();
  if (!base || (player.stick && player.stick.flying)) return;
  pause();
  const rules = data.rules[base.episode.rules];
  let tick = landed && active() === landed.flight ? landed.from : Math.floor(player.at);
  if (tick >= base.episode.ticks) tick = base.body.blunder ? base.body.blunder.tick : Math.max(base.episode.ticks - 1, 0);
  // A turn is flown whole or not at all, so that the replies before it are still those of the model.
  const turn = Math.max(turnAt(base, tick), 0), from = base.starts[turn] || 0, before = base.body.turns.slice(0, turn);
  const asked = before.flatMap((each) => [...Array(each.waited || 0).fill(false), ...Array.from(each.actions, (action) => action === "T")]);
  const queue = [...Array(rules.latency_ticks).fill(false), ...asked].slice(asked.length);
  const flight = {
    world: base.world, course: base.course, states: base.states.slice(0, from + 1), starts: base.starts.slice(0, turn), ghost: null,
    episode: { ...base.episode, human: true, took: from, ticks: from, crashed: false, end: "aborted", pipe: null, lost: null, reward: 0, error: undefined, video: undefined },
    body: { taps: base.body.taps.slice(0, from), turns: before, margins: [], forced: "", blunder: null, death: null, differences: [], slips: [] },
  };
  leaveStick();
  player.touched = true;
  player.stick = { base, flight, from, turn, rules, queue, asked: [], tap: false, flying: false, since: 0, over: 0 };
  $("stick-controls").hidden = false; $("controls").hidden = true;
  $("stick-go").textContent = "Start"; $("stick-save").hidden = true;
  setLanes([flight], 0);
  player.end = Math.max(base.episode.ticks, from + 1); $("scrub").max = player.end;
  const later = rules.latency_ticks ? " Your flaps land " + ticks(rules.latency_ticks) + " late, as the model’s did." : "";
  $("stick-said").textContent = "From tick " + from + ". Press space, click or touch to begin: each is a flap." + later;
  seek(from);
}

/** What is drawn while a person flies: the model and the ghost fly along. */
function stickScene(stick) {
  const { base, flight, from } = stick, n = flight.states.length - 1, share = Math.min(Math.max(player.at - n, 0), 1);
  const others = [{ from: 0, states: base.states, taps: "", plumage: 2 }];
  if ($("ghost").checked && base.ghost) others.push({ ...base.ghost, plumage: 1 });
  const tap = stick.rules.latency_ticks ? stick.queue[0] : stick.tap, [y, v] = flight.states[n];
  const next = tap ? flight.world.jump : v + flight.world.gravity;
  const live = { x: flight.world.bird_x, y: y + (stick.flying ? share * next : 0), v: stick.flying ? next : v };
  return { others, live, hint: stick.flying ? "" : "Space, click or touch\nto fly from tick " + from };
}

function flap() {
  const { stick } = player;
  if (!stick) return;
  stick.tap = true;
  if (!stick.flying) takeOff();
}

function takeOff() {
  const { stick } = player;
  stick.flying = true; stick.over = 0;
  $("stick-go").textContent = "Stop"; $("stick-said").textContent = "";
  player.shown = null;
  requestAnimationFrame((time) => { stick.since = time; soar(stick, time); });
}

function soar(stick, time) {
  if (player.stick !== stick || !stick.flying) return;
  stick.over += Math.min(time - stick.since, 250) / 1000 * Number($("pace").value);
  stick.since = time;
  for (; stick.over >= 1 && stick.flying; stick.over--) flyTick(stick);
  if (!stick.flying) return;
  player.at = stick.flight.states.length - 1 + stick.over;
  player.end = Math.max(player.end, Math.ceil(player.at)); $("scrub").max = player.end;
  render();
  requestAnimationFrame((next) => soar(stick, next));
}

function flyTick(stick) {
  const { flight, queue } = stick, { episode, body, states } = flight;
  stick.asked.push(stick.tap); queue.push(stick.tap); stick.tap = false;
  const tap = queue.shift(), state = move(flight.world, states[states.length - 1], tap), tick = states.length;
  states.push(state); body.taps += tap ? "T" : "."; episode.ticks = tick;
  const hit = crash(flight.course, tick, state[0]);
  if (hit) land(stick, hit.reason, hit.pipe); else if (tick >= stick.rules.max_turns) land(stick, "tick_limit");
}

/** Ends a person's flight, and shows it beside the model's. */
function land(stick, reason, pipe) {
  const { base, flight, rules } = stick, { episode, body } = flight;
  stick.flying = false; player.stick = null; landed = stick;
  const many = rules.ticks_per_turn;
  for (let at = 0; at < stick.asked.length; at += many) {
    const asked = stick.asked.slice(at, at + many);
    body.turns = [...body.turns, { ticks: asked.length, status: "ok", actions: Array.from({ length: many }, (_, n) => asked[n] ? "T" : ".").join("") }];
  }
  flight.starts = startsOf(body.turns); flight.marks = null;
  Object.assign(episode, { end: reason, crashed: reason !== "tick_limit", pipe: pipe === undefined ? null : pipe });
  if (episode.crashed) {
    const last = flight.states[flight.states.length - 1][0], gap = pipe === undefined ? null : flight.course.gap(pipe);
    const reach = gap && Math.floor(gap[1] / 2) - flight.world.radius;
    body.death = { reason, pipe, tick: episode.ticks, miss: gap ? (last > gap[0] ? last - gap[0] - reach : last - gap[0] + reach) : 0 };
  }
  episode.reward = rewardAt(flight, episode.ticks);
  setLanes([base, flight], 1);
  $("controls").hidden = false; $("stick-controls").hidden = false;
  $("stick-go").textContent = "Again"; $("stick-save").hidden = !stick.asked.length;
  const more = episode.ticks - base.episode.ticks, than = " than " + who(base.episode);
  $("stick-said").textContent = more ? "You lived " + ticks(Math.abs(more)) + (more > 0 ? " more" : " less") + than + "." : "You lived as long as " + who(base.episode) + ".";
  seek(episode.ticks);
}

function leaveStick() {
  player.stick = null; landed = null;
  $("stick-controls").hidden = true; $("controls").hidden = false;
}

/** The flight of a person as an episode file, which `flappybird verify` accepts. */
function stickFile({ base, flight, from, turn, rules }) {
  const { episode, body } = flight, player_ = data.players[base.episode.player], run = data.runs[base.episode.run];
  const kept = ["reply", "reasoning", "cut", "ignored", "waited", "prompt_tokens", "completion_tokens", "seconds"];
  const turns = body.turns.map((each, index) => ({
    tick: flight.starts[index], actions: Array.from(each.actions, (action) => action === "T" ? "TAP" : "NOOP"), status: each.status,
    ...Object.fromEntries(kept.filter((name) => each[name] !== undefined && each[name] !== null).map((name) => [name, each[name]])),
  }));
  const format = body.turns.length ? body.turns.reduce((sum, each) => sum + (each.format || 0), 0) / body.turns.length : 0;
  const survived = survival(episode.crashed ? episode.ticks - 1 : episode.ticks), pipes = score(flight, episode.ticks);
  const outcome = { reason: episode.end, ticks: episode.ticks, pipes_passed: pipes, survival_score: survived, format, reward: rewardOf(pipes, survived, format) };
  if (episode.pipe !== null) outcome.pipe = episode.pipe;
  return {
    ...data.file, seed: episode.seed, config: data.worlds[episode.world].config, rules,
    player: { kind: "human", name: "a person after " + player_.name },
    turns, outcome,
    origin: { took_over: { tick: from, turn, from: { kind: player_.kind, name: player_.name }, run: run.label, episode: episode.index } },
  };
}

function stick() {
  $("stick").addEventListener("click", takeStick);
  $("stick-go").addEventListener("click", () => {
    const now = player.stick;
    if (!now) takeStick(); else if (now.flying) land(now, "aborted"); else takeOff();
  });
  $("stick-stop").addEventListener("click", () => { const now = player.stick || landed; if (now) show(now.base.episode, { tick: now.from }); });
  $("stick-save").addEventListener("click", () => {
    if (landed) download(new Blob([JSON.stringify(stickFile(landed), null, 1)], { type: "application/json" }), "flappybird-person-seed-" + landed.flight.episode.seed + "-from-tick-" + landed.from + ".json");
  });
  $("lanes").addEventListener("pointerdown", (event) => { if (player.stick) { event.preventDefault(); flap(); } });
}
