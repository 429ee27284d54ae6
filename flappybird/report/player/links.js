/* Links to a tick, and staying inside the page: in `srcdoc`, `data:` and `blob:` frames a fragment would load the host page. */
const linkTo = (tick) => "#" + (data.runs.length > 1 ? "run=" + player.episode.run + "&" : "") + "episode=" + player.episode.index + "&tick=" + tick + (player.race && !landed ? "&race=1" : "") + (document.documentElement.classList.contains("embed") ? "&embed" : "");
const hasAddress = () => ["http:", "https:", "file:"].includes(location.protocol);

function setAddress(fragment) {
  if (!hasAddress()) return false;
  try { history.replaceState(null, "", fragment); return true; } catch { return false; }
}

function remember(tick) {
  clearTimeout(player.remembering);
  player.remembering = setTimeout(() => { if (player.touched && player.episode) setAddress(linkTo(tick)); }, 150);
}

/** Does what a fragment asks for: opens an episode, filters the table, or scrolls to a section. */
function go(fragment) {
  const wanted = new URLSearchParams(fragment.replace(/^#/, ""));
  if (wanted.has("embed")) document.documentElement.classList.add("embed");
  if (wanted.has("show")) { filter(Object.fromEntries([...wanted].filter(([name]) => name !== "show"))); $("episodes").scrollIntoView(); $("episodes").focus({ preventScroll: true }); return true; }
  if (wanted.has("episode")) { follow(wanted); return true; }
  const target = fragment.length > 1 && document.getElementById(fragment.slice(1));
  if (target) { target.scrollIntoView(); target.focus({ preventScroll: true }); }
  return false;
}

function follow(wanted) {
  const run = Number(wanted.get("run") || 0), index = Number(wanted.get("episode"));
  const episode = data.episodes.find((one) => one.index === index && (one.run === run || data.runs.length === 1));
  if (!episode) { pause(); leaveStick(); player.lanes = []; player.episode = null; notice(data.episodes.length < data.rows ? "The replay of episode " + wanted.get("episode") + " is not in this page, which holds " + data.episodes.length + " of " + data.rows + ". Make one that does: flappybird report RUN --select " + index : "There is no episode " + wanted.get("episode") + " in this report."); ready(); $("replay").scrollIntoView(); return; }
  const tick = Number(wanted.get("tick"));
  player.touched = true;
  show(episode, { tick: Number.isFinite(tick) ? Math.floor(tick) : 0, race: wanted.get("race") === "1" }).then(() => { $("replay").scrollIntoView(); render(); ready(); });
}

const ready = () => { document.documentElement.dataset.ready = Math.round(performance.now()); if (unpackNow) unpackNow(); };

async function copy() {
  pause(); render();
  const fragment = player.episode ? linkTo(Math.floor(player.at)) : "#";
  player.touched = true;
  const shown = setAddress(fragment);
  let said = "Copied";
  try { await navigator.clipboard.writeText(hasAddress() ? location.href.split("#")[0] + fragment : fragment); } catch { said = shown ? "It is in the address bar" : "This frame has no address"; }
  $("link").textContent = said; setTimeout(() => { $("link").textContent = "Copy link"; }, 1600);
}

function other(steps) {
  const at = data.episodes.indexOf(player.episode) + steps;
  if (data.episodes[at]) { player.touched = true; show(data.episodes[at]); }
}

function links() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#']");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const fragment = link.getAttribute("href");
    if (!go(fragment)) setAddress(fragment);
  });
  addEventListener("hashchange", () => go(location.hash));
}
