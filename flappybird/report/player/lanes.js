/* Lanes: one flight, or several on the same course side by side; how large they are drawn. */
async function show(episode, { tick, race = false } = {}) {
  const asked = ++player.asked;
  pause(); leaveStick();
  const rivals = race && episode.task !== undefined ? data.episodes.filter((other) => other.task === episode.task).slice(0, 6) : [episode];
  if (!rivals.includes(episode)) rivals[rivals.length - 1] = episode;
  let flights;
  try { flights = await Promise.all(rivals.map(open)); } catch (error) { notice("This browser cannot unpack the transcript: " + error.message); return; }
  if (asked !== player.asked) return;
  player.episode = episode; player.race = rivals.length > 1;
  const same = data.episodes.filter((other) => episode.task !== undefined && other.task === episode.task).length;
  $("race").hidden = same < 2; $("race").setAttribute("aria-pressed", player.race);
  mark(episode);
  if (flights[0] === null) {
    player.lanes = [];
    notice(title(episode) + " has no transcript: " + episode.problem + (episode.error ? ". It ended by an error: " + episode.error : ""));
    return;
  }
  if (episode.error) notice("This rollout ended by an error and is no score: " + episode.error); else $("player-notice").hidden = true;
  setLanes(flights, rivals.indexOf(episode));
  seek(tick === undefined ? 0 : tick);
}

/** Marks the episode that is shown in the selector and in the table. */
function mark(episode) {
  const position = data.episodes.indexOf(episode);
  $("choice").value = String(position);
  for (const row of rowsOf) row.classList.toggle("current", row === rowsOf[episode.row]);
}

/** Shows `flights`, which are on the same course. */
function setLanes(flights, chosen) {
  $("player").hidden = false;
  player.race = flights.length > 1;
  player.lanes = flights.map((flight) => ({ flight }));
  player.end = Math.max(...flights.map((flight) => Math.max(flight.episode.ticks, flight.ghost && flights.length === 1 ? flight.ghost.from + flight.ghost.states.length - 1 : 0)), 1);
  $("lanes").replaceChildren(...player.lanes.map((each, index) => {
    const box = make("figure", undefined, "lane" + (flights.length > 1 ? "" : " solo")), { episode } = each.flight;
    each.box = box; each.canvas = make("canvas"); each.canvas.setAttribute("role", "img"); each.canvas.setAttribute("aria-label", who(episode) + ", " + title(episode));
    each.canvas.addEventListener("click", () => { if (player.stick) return; player.touched = true; if (player.chosen === index) toggle(); else choose(index); });
    each.caption = make("figcaption"); each.said = make("span", undefined, "sub");
    if (flights.length > 1) {
      const pick = make("button", undefined, "lane-pick");
      pick.type = "button"; pick.title = who(episode); pick.append(nameOf(episode)); pick.addEventListener("click", () => { player.touched = true; choose(index); });
      each.pick = pick; each.caption.append(pick, each.said);
    }
    box.append(each.canvas, each.caption);
    return box;
  }));
  $("scrub").max = player.end;
  choose(chosen);
}

/** Makes a lane the one that the panel, the timeline and the selector speak of. */
function choose(index) {
  player.chosen = index;
  const flight = active(), { episode } = flight;
  if (!episode.human) { player.episode = episode; mark(episode); }
  player.lanes.forEach((each, other) => { each.box.classList.toggle("chosen", player.race && other === index); if (each.pick) each.pick.setAttribute("aria-pressed", other === index); });
  $("whose").replaceChildren(nameOf(episode), make("span", title(episode) + " · " + (player.stick ? "from tick " + player.stick.from + " on" : ended(episode) + " at tick " + episode.ticks + " · reward " + episode.reward.toFixed(2)), "sub"));
  $("turning").disabled = !flight.body.blunder;
  $("ghost-label").hidden = !flight.ghost;
  $("video-box").hidden = !episode.video;
  if (episode.video) $("video").setAttribute("href", episode.video.split("/").map(encodeURIComponent).join("/"));
  player.shown = null;
  transcriptOf(flight);
  render();
}

/** How wide each lane may be, so that picture and controls fit the screen together. */
function laneWidth() {
  const box = $("lanes"), many = player.lanes.length, room = box.clientWidth, world = active().world;
  const others = $("stage").offsetHeight - box.offsetHeight + ($("stage").getBoundingClientRect().top - $("replay").getBoundingClientRect().top);
  const free = Math.max(innerHeight - others - 24, 200), captions = many > 1 ? 46 : 0;
  let best = 0, columns = 1;
  for (let across = 1; across <= many; across++) {
    const rows = Math.ceil(many / across), width = Math.min((room - 10 * (across - 1)) / across, ((free - 10 * (rows - 1)) / rows - captions) * aspectOf(world));
    if (width > best) { best = width; columns = across; }
  }
  box.style.gridTemplateColumns = "repeat(" + columns + ", minmax(0, " + Math.floor(Math.max(best, 140)) + "px))";
  return Math.floor(Math.min(Math.max(best, 140), room));
}

function render() {
  const flight = active();
  if (!flight) return;
  const tick = Math.floor(player.at), width = laneWidth(), { stick } = player;
  for (const each of player.lanes) {
    const { flight: here } = each, over = player.at >= here.episode.ticks;
    // In a race a flight that is over stays where it ended; alone, its ghost flies on.
    const at = player.race ? Math.min(player.at, here.episode.ticks) : player.at;
    const others = $("ghost").checked && here.ghost && !stick ? [{ ...here.ghost, plumage: 1 }] : [];
    drawScene(each.canvas, here, at, width, stick ? stickScene(stick) : { others });
    const said = over ? ended(here.episode) + " at tick " + here.episode.ticks : "reward " + rewardAt(here, tick).toFixed(2);
    if (each.said.textContent !== said) each.said.textContent = said;
    each.box.classList.toggle("over", player.race && over);
  }
  drawTrack();
  $("scrub").value = tick;
  $("scrub").setAttribute("aria-valuetext", "tick " + tick + " of " + flight.episode.ticks);
  if (player.shown !== flight || player.shownTick !== tick) { player.shown = flight; player.shownTick = tick; describe(flight, tick); }
  if (!player.playing && !stick) remember(tick);
}
