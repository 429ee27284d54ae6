/* The table of episodes: sorted by any column, filtered by run, ending, cause or pipes. */
const ROWS_AT_ONCE = 100;
/* All rows in the order of the run; as they are sorted; those that a filter lets through; the first that is shown. */
let rowsOf = [], sorted = [], fitting = [], firstRow = 0;
/** Settles once the rows that came packed are there too. */
let allRows = Promise.resolve(), unpackNow;

/** Puts rows into the table: all, those filtered out hidden; of many only those of a page. */
function turnTo(first) {
  firstRow = first;
  if (rowsOf.length <= ROWS_AT_ONCE) { $("rows").replaceChildren(...sorted); return; }
  $("rows").replaceChildren(...fitting.slice(first, first + ROWS_AT_ONCE));
  $("pager").hidden = fitting.length <= ROWS_AT_ONCE;
  $("page-back").disabled = first === 0; $("page-on").disabled = first + ROWS_AT_ONCE >= fitting.length;
  $("page-said").textContent = (first + 1).toLocaleString("en") + " to " + Math.min(first + ROWS_AT_ONCE, fitting.length).toLocaleString("en") + " of " + fitting.length.toLocaleString("en");
}

async function unpackRows() {
  const box = make("template");
  box.innerHTML = (await unpack(data.rest)).join("");   // markup of the page's own template, which escapes what a run says
  rowsOf = sorted = fitting = [...rowsOf, ...box.content.children];
  if (player.episode) mark(player.episode);
  turnTo(0);
}

async function filter(wanted) {
  await allRows;
  const names = Object.keys(wanted).filter((name) => ["run", "end", "cause", "pipes"].includes(name));
  const fits = (row, name) => {
    if (name !== "pipes") return row.dataset[name] === wanted[name];
    const [low, high] = wanted.pipes.split("-").map(Number), pipes = Number(row.dataset.pipes);
    return row.dataset.pipes !== undefined && low <= pipes && pipes <= high;
  };
  let shown = 0;
  for (const row of rowsOf) { row.hidden = !names.every((name) => fits(row, name)); shown += !row.hidden; }
  fitting = sorted.filter((row) => !row.hidden);
  turnTo(0);
  for (const button of document.querySelectorAll(".filters button")) {
    const { by, value } = button.dataset;
    button.setAttribute("aria-pressed", by ? names.length === 1 && wanted[by] === value : !names.length);
  }
  const of = names.includes("run") && data.runs[Number(wanted.run)] ? " of " + data.runs[Number(wanted.run)].label : "";
  const pipes = names.includes("pipes") ? " with " + wanted.pipes.split("-").filter((each, n, all) => !n || each !== all[0]).join(" to ") + " pipes passed" : "";
  $("shown").textContent = shown + " of " + rowsOf.length + " shown" + of + pipes;
}

function table() {
  const rows = $("rows");
  rowsOf = sorted = fitting = Array.from(rows.rows).filter((row) => row.id);
  if (data.rest) allRows = new Promise((begin) => { unpackNow = begin; }).then(unpackRows);   // the first episode comes first
  $("page-back").addEventListener("click", () => turnTo(firstRow - ROWS_AT_ONCE)); $("page-on").addEventListener("click", () => turnTo(firstRow + ROWS_AT_ONCE));
  for (const button of document.querySelectorAll("#episodes thead button")) button.addEventListener("click", async () => {
    await allRows;
    const head = button.parentElement, column = head.cellIndex, up = head.getAttribute("aria-sort") !== "ascending";
    for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const told = rowsOf.map((row) => { const cell = row.children[column], text = cell.dataset.v ?? cell.textContent; return { row, text, number: Number(text) }; });
    const order = (a, b) => {
      if (a.text === "" || b.text === "") return (a.text === "") - (b.text === "");   // what is not known comes last, either way
      const by = a.number - b.number;
      return (Number.isNaN(by) ? (a.text < b.text ? -1 : a.text > b.text ? 1 : 0) : by) * (up ? 1 : -1);
    };
    sorted = told.sort(order).map(({ row }) => row);
    fitting = sorted.filter((row) => !row.hidden);
    turnTo(0);
  });
  for (const button of document.querySelectorAll(".filters button")) button.addEventListener("click", () => filter(button.dataset.by ? { [button.dataset.by]: button.dataset.value } : {}));
  rows.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && row.id && !event.target.closest("a")) go(row.querySelector("a").getAttribute("href"));
  });
  // What scrolls says so: a shadow at the side where more is.
  for (const box of document.querySelectorAll(".scroll")) {
    const hint = () => { box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 2); box.classList.toggle("more-left", box.scrollLeft > 2); box.classList.toggle("more-below", box.scrollTop + box.clientHeight < box.scrollHeight - 2); };
    box.addEventListener("scroll", hint, { passive: true }); new ResizeObserver(hint).observe(box); hint();
  }
}
