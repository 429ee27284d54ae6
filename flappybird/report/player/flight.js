/* An episode, opened: its turns, and every state rebuilt from what was flown. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const opened = new Map();
/** The flight of an episode of the page; null where there is no transcript. */
async function open(episode) {
  if (!episode.body) return null;
  if (!opened.has(episode)) {
    const body = await unpack(episode.body), world = data.worlds[episode.world], course = courseOf(world, episode.seed);
    const states = fly(world, body.taps);
    const ghost = body.ghost && { from: body.ghost.from, states: fly(world, body.ghost.taps, states[body.ghost.from]), taps: body.ghost.taps };
    opened.set(episode, { episode, body, world, course, states, starts: startsOf(body.turns), ghost });
    if (opened.size > 40) opened.delete(opened.keys().next().value);
  }
  return opened.get(episode);
}

/** The tick at which each turn begins. */
function startsOf(turns) {
  const starts = [];
  let at = 0;
  for (const turn of turns) { starts.push(at); at += turn.ticks; }
  return starts;
}

/** Pipes passed at `tick`. A crash passes nothing. */
const score = (flight, tick) => passed(flight.world, flight.episode.crashed && tick >= flight.episode.ticks ? flight.episode.ticks - 1 : tick);

/** Index of the turn that answers `tick`; at the end, of the last one. */
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
  return rewardOf(score(flight, tick), survival(survived), format);
}
