/* The panel beside the game: what was said at this tick, what became of it, and what it meant. */
const SHOWN = 4000, MORE = 20000;   // characters shown at once of a text, and with each click

/** Shows `text` literally, all of it on demand: a browser lays a very long text out for minutes. */
function words(element, text, none, inside) {
  element.replaceChildren();
  if (!text) { element.append(make("span", none, "none")); return; }
  if (inside) {
    const [start, length] = inside;
    const parts = [[text.slice(0, start)], [text.slice(start, start + length), "mark"], [text.slice(start + length)]];
    for (const [part, tag] of parts) if (part) lengthy(tag ? element.appendChild(make(tag)) : element, part);
  } else lengthy(element, text);
}

function lengthy(element, text) {
  element.append(text.slice(0, SHOWN));
  if (text.length <= SHOWN) return;
  let at = SHOWN;
  const more = make("button", undefined, "more"), label = () => { more.textContent = "Show " + Math.min(MORE, text.length - at).toLocaleString("en") + " more of " + text.length.toLocaleString("en") + " characters"; };
  more.type = "button"; label();
  more.addEventListener("click", () => {
    more.before(make("bdi", text.slice(at, at + MORE), "piece")); at += MORE;
    if (at >= text.length) more.remove(); else label();
  });
  element.append(more);
}

const actionsOf = (turn) => turn.actions.length === 1 ? (turn.actions === "T" ? "TAP" : "NOOP") : Array.from(turn.actions, (each) => each === "T" ? "TAP" : "·").join(" ");

function describe(flight, tick) {
  const { episode, body, course, states } = flight;
  $("clock").replaceChildren("Tick " + Math.min(tick, episode.ticks) + " ", make("small", "of " + episode.ticks + (tick > episode.ticks ? " + " + (tick - episode.ticks) : "")));
  verdict(flight, tick);
  $("lane-name").replaceChildren(nameOf(episode)); $("lane-name").hidden = !player.race;
  const index = turnAt(flight, Math.min(tick, episode.ticks)), turn = body.turns[index], over = tick >= episode.ticks;
  $("turn-title").textContent = turn ? (over ? "After the last turn" : "Turn " + index) : "No turns";
  const flying = player.stick;
  $("status").textContent = turn && !flying ? turn.status : ""; $("status").className = "pill " + (turn && turn.status === "ok" ? "ok" : "bad");
  const actions = turn && !flying ? actionsOf(turn) : "";
  $("action").textContent = actions; $("action").className = "pill" + (actions.includes("TAP") ? " tap" : "");

  const now = Math.min(tick, states.length - 1), [y, v] = states[now];
  const next = visible(course, now).find((pipe) => pipe.number >= score(flight, now));
  const facts = [["birdY", decimal(y)], ["velY", decimal(v)]];
  if (next) facts.push(["Next gap", decimal(next.y - next.height / 2) + " to " + decimal(next.y + next.height / 2)], ["Next pipe", "the " + ordinal(next.number + 1) + ", at x " + decimal(next.x)]);
  facts.push(["Pipes passed", String(score(flight, now))], ["Reward so far", rewardAt(flight, now).toFixed(2)]);
  if (turn && turn.prompt_tokens !== undefined) facts.push(["Prompt tokens", String(turn.prompt_tokens)]);
  if (turn && turn.completion_tokens !== undefined) facts.push(["Reply tokens", turn.completion_tokens + (turn.cut ? " (cut)" : "")]);
  if (turn && turn.seconds !== undefined) facts.push(["Seconds", turn.seconds.toFixed(2)]);
  if (turn && turn.waited) facts.push(["Waited", ticks(turn.waited)]);
  $("facts").replaceChildren(...facts.map(([name, value]) => { const pair = make("div"); pair.append(make("dt", name), make("dd", value)); return pair; }));

  const slips = body.blunder && body.slips && index === body.blunder.turn && !over ? body.slips : [];
  $("slips-box").hidden = !slips.length; $("slips").replaceChildren(...slips.map((line) => make("li", line)));
  const reply = turn && turn.reply !== undefined ? turn.reply : null, thought = turn ? turn.thought : undefined, inside = Array.isArray(thought);
  words($("thought"), inside ? reply.substr(thought[0], thought[1]) : thought, turn ? "No thought in this reply." : "Nothing was said.");
  $("reasoning-box").hidden = !(turn && turn.reasoning);
  words($("reasoning"), turn && turn.reasoning, "");
  words($("reply"), reply, turn && reply === null ? "A key was pressed; nothing was said." : "The reply is empty.", inside ? thought : null);
  $("differences-box").hidden = !body.differences.length;
  $("differences").replaceChildren(...body.differences.slice(0, 20).map((line) => make("li", line)));
  transcriptAt(index);
}

function verdict(flight, tick) {
  const { episode, body } = flight, { blunder, death } = body, name = (tap) => tap ? "a TAP" : "holding", large = (text) => text[0].toUpperCase() + text.slice(1);
  let look = "", lead, rest;
  if (player.stick) [look, lead, rest] = ["free", player.stick.flying ? "You fly." : "Your turn.", "The yellow bird is yours, the pink one " + who(player.stick.base.episode) + "’s; the blue one is the flight that would have lived."];
  else if (tick > episode.ticks) [look, lead, rest] = ["free", "The episode is over.", player.race ? "This flight " + ended(episode) + " at tick " + episode.ticks + "." : "Only the ghost flies on."];
  else if (tick === episode.ticks && death) {
    const far = Math.abs(death.miss) / UNIT, side = death.miss > 0 ? "above" : "below";
    const where = death.reason === "pipe" ? "Hit the " + ordinal(death.pipe + 1) + " pipe, " + far.toFixed(2) + " " + side + " its gap." : "Hit the " + death.reason + ".";
    [look, lead, rest] = ["doomed", where, blunder ? (blunder.doomed ? "It had been doomed for " + ticks(blunder.doomed) + "." : "One tick earlier it could still be saved.") : episode.human ? "" : "No bird gets further on this course."];
  } else if (tick === episode.ticks) [look, lead, rest] = [blunder ? "doomed" : "free", episode.end === "tick_limit" ? "Reached the tick limit alive." : "The episode stopped here: " + ended(episode) + ".", blunder ? "Nothing could have saved the bird any more." : ""];
  else if (blunder && tick === blunder.tick) {
    const turn = blunder.turn === null ? null : body.turns[blunder.turn], start = turn ? flight.starts[blunder.turn] : 0;
    const late = !turn || data.rules[episode.rules].latency_ticks + start + (turn.waited || 0) > tick;
    const why = late && turn && turn.waited ? " No reply had come yet." : turn && turn.status !== "ok" ? " The reply was " + turn.status + ", so it flew as no-op." : turn && start !== tick && turn.actions.length === 1 ? " It was asked for at tick " + start + "." : "";
    [look, lead, rest] = ["turning", "Point of no return.", large(name(blunder.tap)) + " lost the game here; " + name(!blunder.tap) + " would have lived." + why];
  } else if (blunder && tick > blunder.tick) [look, lead, rest] = ["doomed", "Doomed.", "Nothing can save the bird any more" + (death ? "; it dies in " + ticks(episode.ticks - tick) : "") + "."];
  else if (body.forced[tick] === "T") [look, lead, rest] = ["forced", "Only TAP lives here.", "Without it, the next tick is past the point of no return."];
  else if (body.forced[tick] === ".") [look, lead, rest] = ["forced", "Only holding lives here.", "A TAP would be past the point of no return; without one there are " + ticks(body.margins[tick]) + " to spare."];
  else if (tick < body.margins.length) {
    const spare = body.margins[tick];
    [look, lead, rest] = ["free", "Both actions live.", spare < 0 ? "" : tick + spare >= episode.horizon ? "No further TAP is needed." : "The bird can go " + ticks(spare) + " without a TAP."];
  } else [look, lead, rest] = ["free", episode.human ? "You fly." : "", ""];
  $("verdict").className = "verdict " + look;
  $("verdict").replaceChildren(make("b", lead), " " + rest);
}
