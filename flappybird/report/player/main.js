/* Start: the selector, the controls, the keyboard, and the first episode. */
const touch = (action) => () => { player.touched = true; action(); };

function selector() {
  const groups = new Map();
  data.episodes.forEach((episode, index) => {
    if (!groups.has(episode.run)) {
      const group = data.runs.length > 1 ? make("optgroup") : $("choice");
      if (data.runs.length > 1) { group.label = data.runs[episode.run].number + " · " + data.runs[episode.run].label; $("choice").append(group); }
      groups.set(episode.run, group);
    }
    const name = data.runs.length > 1 ? data.runs[episode.run].number + " · " : "";
    const option = make("option", name + title(episode) + " · " + ended(episode) + (episode.ticks === undefined ? "" : " at tick " + episode.ticks));
    option.value = index;
    groups.get(episode.run).append(option);
  });
}

function controls() {
  const end = () => { pause(); seek(active() ? active().episode.ticks : 0); };
  $("choice").addEventListener("change", touch(() => show(data.episodes[Number($("choice").value)])));
  $("previous").addEventListener("click", () => other(-1)); $("next").addEventListener("click", () => other(1));
  $("race").addEventListener("click", touch(() => show(player.episode, { tick: Math.floor(player.at), race: !player.race || Boolean(landed) })));
  $("first").addEventListener("click", touch(() => step(-Infinity))); $("last").addEventListener("click", touch(end));
  $("back").addEventListener("click", touch(() => step(-1))); $("forward").addEventListener("click", touch(() => step(1)));
  $("play").addEventListener("click", touch(toggle)); $("turning").addEventListener("click", touch(turning));
  $("scrub").addEventListener("input", touch(() => { if (player.stick) return; pause(); seek(Number($("scrub").value)); }));
  $("ghost").addEventListener("change", render); $("link").addEventListener("click", copy);

  // By place on the keyboard, so that letters work on other layouts; digits and signs by what they write.
  const keys = {
    Space: toggle, ArrowLeft: (event) => step(event.shiftKey ? -10 : -1), ArrowRight: (event) => step(event.shiftKey ? 10 : 1), Home: () => step(-Infinity), End: end,
    KeyN: turning, KeyI: nextInvalid, KeyG: () => { $("ghost").checked = !$("ghost").checked; render(); }, KeyJ: () => other(1), KeyK: () => other(-1),
    KeyL: copy, KeyS: saveMoment, KeyF: takeStick, KeyT: () => tab(transcriptShown() ? "turn" : "transcript"),
  };
  const always = ["KeyJ", "KeyK"];
  addEventListener("keydown", (event) => {
    const target = event.target.closest ? event.target : document.body;
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    if (player.stick && !target.closest("select, input")) {
      if (event.code === "Space" || event.code === "ArrowUp" || event.code === "Enter" && !target.closest("button")) { event.preventDefault(); if (!event.repeat) flap(); return; }
      if (event.code === "Escape") { event.preventDefault(); if (player.stick.flying) land(player.stick, "aborted"); else $("stick-stop").click(); return; }
      if (player.stick.flying) return;
    }
    if (event.key === "?") { if (!target.closest("input, select")) { event.preventDefault(); $("help").showModal(); } return; }
    const letter = event.code.startsWith("Key"), inside = target.closest("select, input, textarea, dialog, pre, .scroll, .transcript, [role=tab], blockquote");
    if (!keys[event.code]) return;
    if (inside && !(inside.id === "scrub" && (letter || event.code === "Space")) && !(inside.id === "ghost" && event.code !== "Space") && !(letter && inside.matches("pre, .scroll, .transcript, [role=tab], blockquote"))) return;
    if (event.code === "Space" && target.closest("button, a, summary")) return;
    if (!active() && !always.includes(event.code)) return;
    event.preventDefault(); player.touched = true; keys[event.code](event);
  });
}

readColours();
table(); saving(); links(); timeline(); transcript(); stick(); selector(); controls();
new ResizeObserver(() => render()).observe($("player"));
addEventListener("resize", () => render());
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", () => { readColours(); render(); });

/** For tests and the curious: what the page makes of an episode, tick by tick. */
globalThis.flappybird = {
  player,
  landed: () => landed && stickFile(landed),
  tick: () => { player.stick.flying = true; flyTick(player.stick); },
  async trajectory(position) {
    const flight = await open(data.episodes[position]);
    return flight && flight.states.map(([y, velocity], tick) => ({
      tick, y, velocity, score: score(flight, tick), reward: rewardAt(flight, tick), crash: crash(flight.course, tick, y), pipes: visible(flight.course, tick).map((pipe) => [pipe.x, pipe.y, pipe.height]),
    }));
  },
};

if (!data.episodes.length) { notice("There are no episodes in this report."); go(location.hash); ready(); }
else if (data.race && !location.hash) show(data.episodes[data.episodes.length - 1], { race: true }).then(ready);
else if (!go(location.hash) || location.hash.includes("show")) {
  const telling = data.episodes.filter((episode) => episode.body && !episode.error && episode.lost !== null);
  const first = telling.reduce((best, episode) => !best || episode.reward > best.reward ? episode : best, null) || data.episodes.find((episode) => episode.body) || data.episodes[0];
  show(first, { tick: first.lost || 0 }).then(ready);
}
