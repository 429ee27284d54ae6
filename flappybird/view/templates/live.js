"use strict";
/* While a run goes on, what changes of the page is fetched again; what is ticked, and where the reader is, stays. */
(() => {
  const live = document.getElementById("live");
  if (!live || !("live" in document.body.dataset)) return;
  const runs = location.pathname === "/";
  async function again() {
    if (document.hidden) return;
    try {
      const answer = await fetch((runs ? "/" : "/rows") + location.search, { cache: "no-store" });
      if (!answer.ok) return;
      const box = document.createElement("template");
      box.innerHTML = await answer.text();
      const fresh = runs ? box.content.getElementById("live") : box.content;
      const ticked = new Set(Array.from(live.querySelectorAll("input:checked"), (one) => one.value));
      if (!fresh || live.contains(document.activeElement) && document.activeElement !== live && document.activeElement.tagName === "INPUT") return;
      live.replaceChildren(...(runs ? fresh.childNodes : [fresh]));
      for (const box of live.querySelectorAll("input[type=checkbox]")) box.checked = ticked.has(box.value);
    } catch { /* the server has ended: what is shown stays */ }
  }
  setInterval(again, 2000);
})();
