/* The table of episodes: sorted by any column, filtered by run, ending, cause or pipes. */
let rowsOf = [];

function filter(wanted) {
  const names = Object.keys(wanted).filter((name) => ["run", "end", "cause", "pipes"].includes(name));
  const fits = (row, name) => {
    if (name !== "pipes") return row.dataset[name] === wanted[name];
    const [low, high] = wanted.pipes.split("-").map(Number), pipes = Number(row.dataset.pipes);
    return row.dataset.pipes !== undefined && low <= pipes && pipes <= high;
  };
  let shown = 0;
  for (const row of rowsOf) { row.hidden = !names.every((name) => fits(row, name)); shown += !row.hidden; }
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
  rowsOf = Array.from(rows.rows).filter((row) => row.id);
  for (const button of document.querySelectorAll("#episodes thead button")) button.addEventListener("click", () => {
    const head = button.parentElement, column = head.cellIndex, up = head.getAttribute("aria-sort") !== "ascending";
    for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const order = ([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === "");   // what is not known comes last, either way
      const numbers = Number(a) - Number(b);
      return (Number.isNaN(numbers) ? (a < b ? -1 : a > b ? 1 : 0) : numbers) * (up ? 1 : -1);
    };
    rows.replaceChildren(...rowsOf.map((row) => [key(row), row]).sort(order).map(([, row]) => row));
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
