/* Taking pictures away: the moment that is shown, and charts, as files. */
function download(blob, name) {
  const url = URL.createObjectURL(blob), link = make("a");
  link.href = url; link.download = name; document.body.append(link); link.click(); link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function saveMoment() {
  const each = lane();
  if (!each) return;
  pause(); render();
  const { episode } = each.flight, run = data.runs.length > 1 ? "run-" + data.runs[episode.run].number + "-" : "";
  each.canvas.toBlob((blob) => blob && download(blob, "flappybird-" + run + "episode-" + episode.index + "-tick-" + Math.floor(player.at) + ".png"));
}

/** A chart with the page's style written into it, and its legend below it, so that it stands alone. */
function aloneSvg(figure) {
  const svg = figure.querySelector("svg.chart"), copy_ = svg.cloneNode(true), [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "fill-opacity", "font-size", "font-family"];
  const from = svg.querySelectorAll("*"), to = copy_.querySelectorAll("*");
  from.forEach((element, index) => { const style = getComputedStyle(element); for (const name of kept) to[index].setAttribute(name, style.getPropertyValue(name)); });
  for (const link of copy_.querySelectorAll("a")) link.replaceWith(...link.childNodes);
  const space = "http://www.w3.org/2000/svg", put = (tag, attributes, text) => { const element = document.createElementNS(space, tag); for (const name in attributes) element.setAttribute(name, attributes[name]); if (text) element.textContent = text; copy_.append(element); return element; };
  const ink = getComputedStyle(document.body).color, paper = getComputedStyle(figure).backgroundColor, entries = Array.from(figure.querySelectorAll(".keys-of-chart li"));
  let y = height + 14;
  for (const entry of entries) {
    const swatch = entry.querySelector("svg").firstElementChild, drawn = swatch.cloneNode(true), style = getComputedStyle(swatch), named = entry.querySelector(".badge");
    for (const name of kept) drawn.setAttribute(name, style.getPropertyValue(name));
    drawn.setAttribute("transform", "translate(10 " + (y - 6) + ")"); copy_.append(drawn);
    put("text", { x: 40, y: y + 4, fill: ink, "font-size": 12, "font-family": "sans-serif" }, named ? named.textContent + " " + named.title : entry.textContent.trim());
    y += 18;
  }
  const tall = entries.length ? y : height;
  copy_.setAttribute("xmlns", space); copy_.setAttribute("viewBox", "0 0 " + width + " " + tall); copy_.setAttribute("width", width); copy_.setAttribute("height", tall);
  const ground = put("rect", { width, height: tall, fill: paper });
  copy_.prepend(ground);
  return [new XMLSerializer().serializeToString(copy_), width, tall];
}

function saveChart(figure, kind) {
  const [text, width, height] = aloneSvg(figure), name = "flappybird-" + figure.dataset.chart;
  if (kind === "svg") { download(new Blob([text], { type: "image/svg+xml" }), name + ".svg"); return; }
  const image = new Image(), canvas = make("canvas");
  canvas.width = 3 * width; canvas.height = 3 * height;
  image.onload = () => { canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height); canvas.toBlob((blob) => blob && download(blob, name + ".png")); };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}

function saving() {
  for (const box of document.querySelectorAll(".save-as")) box.hidden = false;
  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-save]");
    if (button) saveChart(button.closest("figure"), button.dataset.save);
  });
  $("moment").addEventListener("click", saveMoment);
}
