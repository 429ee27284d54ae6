/* What the player shows: lanes, the chosen one, and the moment. */
const player = { lanes: [], chosen: 0, at: 0, end: 1, playing: false, episode: null, race: false, since: 0, asked: 0, touched: false, stick: null };
const lane = () => player.lanes[player.chosen] || null;
const active = () => lane() && lane().flight;

const make = (tag, text, name) => { const element = document.createElement(tag); if (text !== undefined) element.textContent = text; if (name) element.className = name; return element; };
const decimal = (units) => {
  const whole = Math.floor(Math.abs(units) / UNIT), part = Math.abs(units) % UNIT;
  const digits = part % 100 ? String(part).padStart(4, "0").replace(/0+$/, "") : String(part / 100).padStart(2, "0");
  return (units < 0 ? "−" : "") + whole + "." + digits;
};
const ordinal = (number) => number + (number % 100 > 10 && number % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][number % 10] || "th");
const ticks = (number) => number + (number === 1 ? " tick" : " ticks");

const ended = (episode) => episode.end === "pipe" ? "hit the " + ordinal(episode.pipe + 1) + " pipe" : data.ends[episode.end];

/** Who flew: the name of a run, or a person who took over. */
const who = (episode) => episode.human ? "You, after " + data.runs[episode.run].label : data.runs[episode.run].label;
const title = (episode) => "Episode " + episode.index + (episode.seed === undefined ? "" : " · seed " + episode.seed);
const badge = (run) => { const element = make("span", String(data.runs[run].number), "badge b-" + data.runs[run].look); element.title = data.runs[run].label; return element; };
/** A name with the colour and number of its run, where there are several. */
function nameOf(episode) {
  const box = make("span", undefined, "named");
  if (data.runs.length > 1) box.append(badge(episode.run));
  box.append(make("bdi", who(episode)));
  return box;
}

function pause() {
  if (player.playing) player.at = Math.floor(player.at);
  player.playing = false; $("play").classList.remove("playing"); $("play").setAttribute("aria-label", "Play");
}

function play() {
  if (!active()) return;
  if (player.at >= player.end) player.at = 0;
  player.playing = true; $("play").classList.add("playing"); $("play").setAttribute("aria-label", "Pause");
  requestAnimationFrame((time) => { player.since = time; frame(time); });
}

function frame(time) {
  if (!player.playing) return;
  player.at = Math.min(player.at + Math.min(time - player.since, 250) / 1000 * Number($("speed").value), player.end);
  player.since = time;
  if (player.at >= player.end) pause();
  render();
  if (player.playing) requestAnimationFrame(frame);
}

const toggle = () => { if (player.playing) { pause(); render(); } else play(); };
const step = (by) => { pause(); seek(Math.floor(player.at) + by); };
const turning = () => { const flight = active(); if (flight && flight.body.blunder) { pause(); seek(flight.body.blunder.tick); } };

function seek(tick) {
  player.at = Math.min(Math.max(tick, 0), player.end);
  render();
}

function notice(text) {
  $("player-notice").hidden = false; $("player-notice").textContent = text;
  $("player").hidden = !(player.episode && player.episode.body);
}
