/* The transcript: system prompt, and every turn as it was sent and said; searched and paged, since there can be thousands. */
const PAGE = 40;
const script = { flight: null, found: [], start: 0, index: 0, at: -1 };

function transcriptOf(flight) {
  script.flight = flight; script.start = 0; script.index = -1;
  search();
}

const transcriptShown = () => !$("panel-transcript").hidden;

function tab(name) {
  for (const each of ["turn", "transcript"]) {
    const on = each === name;
    $("tab-" + each).setAttribute("aria-selected", on); $("tab-" + each).tabIndex = on ? 0 : -1; $("panel-" + each).hidden = !on;
  }
  if (name === "transcript" && script.flight) { script.index = -1; transcriptAt(turnAt(script.flight, Math.min(Math.floor(player.at), script.flight.episode.ticks))); }
}

const textOf = (turn) => [turn.seen, turn.reply, turn.reasoning, turn.status].filter(Boolean).join("\n").toLowerCase();

function search() {
  const { flight } = script, wanted = $("search").value.trim().toLowerCase();
  if (!flight) return;
  const turns = flight.body.turns, invalid = turns.filter((turn) => turn.status !== "ok").length;
  script.found = turns.map((_, index) => index).filter((index) => !wanted || textOf(turns[index]).includes(wanted));
  $("found").textContent = wanted ? script.found.length + " of " + turns.length + " turns" : turns.length + (turns.length === 1 ? " turn" : " turns") + (invalid ? ", " + invalid + " invalid" : "");
  $("next-invalid").disabled = !invalid; $("to-lost").disabled = !flight.body.blunder;
  script.start = 0;
  if (transcriptShown()) page();
}

/** Brings turn `index` into the transcript and marks it. */
function transcriptAt(index) {
  if (!transcriptShown() || index === script.index) return;
  script.index = index;
  const place = script.found.indexOf(index);
  if (place < 0) { page(); return; }
  if (place < script.start || place >= script.start + PAGE || !$("transcript").children.length) { script.start = Math.max(Math.floor(place / PAGE) * PAGE, 0); page(); } else marked();
  const box = $("transcript"), entry = box.querySelector("[data-turn='" + index + "']");
  if (entry) box.scrollTop = index === 0 ? 0 : entry.offsetTop - box.offsetTop - 8;
}

function marked() {
  for (const entry of $("transcript").querySelectorAll("[data-turn]")) entry.classList.toggle("current", Number(entry.dataset.turn) === script.index);
}

function page() {
  const { flight, found, start } = script, shown = found.slice(start, start + PAGE), box = $("transcript"), parts = [];
  const paging = (text, to) => { const button = make("button", text, "more"); button.type = "button"; button.addEventListener("click", () => { script.start = to; page(); box.scrollTop = 0; }); return button; };
  if (start > 0) parts.push(paging("Earlier turns", Math.max(start - PAGE, 0)));
  else if (data.prompts[flight.episode.prompt]) {
    const details = make("details", undefined, "entry"), text = make("pre", undefined, "words");
    text.textContent = data.prompts[flight.episode.prompt]; details.append(make("summary", "System prompt"), text);
    details.open = !$("search").value; parts.push(details);
  }
  parts.push(...shown.map((index) => entryOf(flight, index)));
  if (!shown.length) parts.push(make("p", flight.body.turns.length ? "No turn holds these words." : "There is no turn.", "none"));
  if (start + PAGE < found.length) parts.push(paging("Later turns", start + PAGE));
  box.replaceChildren(...parts);
  marked();
}

function entryOf(flight, index) {
  const turn = flight.body.turns[index], entry = make("article", undefined, "entry"), head = make("p", undefined, "entry-head"), go = make("button", "Tick " + flight.starts[index], "link");
  entry.dataset.turn = index; go.type = "button";
  go.addEventListener("click", () => { player.touched = true; pause(); script.index = index; seek(flight.starts[index] + (turn.waited || 0)); marked(); });
  head.append(go, make("span", turn.status, "pill " + (turn.status === "ok" ? "ok" : "bad")), make("span", actionsOf(turn), "pill" + (turn.actions.includes("T") ? " tap" : "")));
  if (flight.body.blunder && flight.body.blunder.turn === index) head.append(make("span", "point of no return", "pill lost"));
  const tokens = [turn.prompt_tokens !== undefined && turn.prompt_tokens + " in", turn.completion_tokens !== undefined && turn.completion_tokens + " out"].filter(Boolean).join(", ");
  if (tokens) head.append(make("span", tokens + " tokens", "sub"));
  entry.append(head);
  if (turn.seen !== undefined) { const seen = make("pre", undefined, "words seen"); lengthy(seen, turn.seen); entry.append(seen); }
  const picture = pictureOf(flight, turn, index);
  if (picture) entry.append(picture);
  if (turn.reasoning) { const aside = make("pre", undefined, "words aside"); lengthy(aside, turn.reasoning); entry.append(make("p", "Reasoning field", "sub"), aside); }
  const said = make("pre", undefined, "words said-reply"); said.dir = "auto";
  words(said, turn.reply, turn.reply === undefined ? "A key was pressed; nothing was said." : "The reply is empty.", Array.isArray(turn.thought) ? turn.thought : null);
  entry.append(said);
  return entry;
}

/** The picture that was sent with a turn: as it was where the page holds it, else drawn again from the same state. */
function pictureOf(flight, turn, index) {
  if (!String(data.rules[flight.episode.rules].observation).includes("image")) return null;
  const box = make("figure", undefined, "seen-picture");
  if (turn.picture) {
    const image = make("img");
    image.src = "data:image/png;base64," + turn.picture; image.alt = "The picture that was sent"; image.width = 288; image.height = 264;
    box.append(image, make("figcaption", "The picture as it was sent", "sub"));
  } else {
    const canvas = make("canvas");
    drawScene(canvas, { ...flight, body: { ...flight.body, blunder: null } }, flight.starts[index], 240);
    box.append(canvas, make("figcaption", "The picture, drawn again by this page from the same state", "sub"));
  }
  return box;
}

/** Jumps to the next reply after the present one that was not valid, round and round. */
function nextInvalid() {
  const flight = active();
  if (!flight) return;
  const turns = flight.body.turns, now = turnAt(flight, Math.min(Math.floor(player.at), flight.episode.ticks));
  for (let n = 1; n <= turns.length; n++) {
    const index = (now + n) % turns.length;
    if (turns[index].status !== "ok" && turns[index].ticks) { player.touched = true; pause(); seek(flight.starts[index]); return; }
  }
}

function transcript() {
  $("tab-turn").addEventListener("click", () => tab("turn")); $("tab-transcript").addEventListener("click", () => tab("transcript"));
  for (const [from, to] of [["turn", "transcript"], ["transcript", "turn"]]) $("tab-" + from).addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") { event.preventDefault(); event.stopPropagation(); tab(to); $("tab-" + to).focus(); }
  });
  $("search").addEventListener("input", search);
  $("next-invalid").addEventListener("click", nextInvalid); $("to-lost").addEventListener("click", () => { player.touched = true; turning(); });
}
