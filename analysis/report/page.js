"use strict";
// A third click restores the order of the file, which is that of the configuration.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const values = new Map(original.map((row) => [row, row.cells[column].dataset.v]));
    const numeric = [...values.values()].some((v) => v !== "" && !Number.isNaN(Number(v)));
    const order = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const next = order[(order.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    if (next) head.setAttribute("aria-sort", next);
    body.append(...(next ? sorted(original, values, numeric, next === "descending") : original));
  }));
}
function sorted(rows, values, numeric, down) {
  const known = (row) => values.get(row) !== "" && (!numeric || !Number.isNaN(Number(values.get(row))));
  const compare = (a, b) => numeric ? Number(values.get(a)) - Number(values.get(b))
    : values.get(a).localeCompare(values.get(b), "en", { numeric: true });
  const full = rows.filter(known).sort((a, b) => (down ? compare(b, a) : compare(a, b)));
  return [...full, ...rows.filter((row) => !known(row))]; // what has no value stays at the end
}
// A table that is wider than its place gets closer cells, then cards: none is cut off. The first, which is to be seen
// beside the verdict, is tried with its heads upright before that.
const fitted = new ResizeObserver((boxes) => boxes.forEach(({ target }) => {
  const looks = target.closest("details") ? ["tight", "tight cards"] : ["tight", "tight upright", "tight cards"];
  target.className = "scroll";
  for (const look of looks) if (target.scrollWidth > target.clientWidth) target.className = `scroll ${look}`;
}));
document.querySelectorAll(".scroll").forEach((box) => fitted.observe(box));
// On a telephone the words on the first figure are folded, so that the table below it is on the screen.
const words = document.querySelector("details.words");
if (words && matchMedia("(max-width: 40rem)").matches) words.open = false;
// Links open the sections that they point into; printing opens all.
const openTo = (node) => { for (let at = node; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true; };
const reveal = () => {
  const node = document.getElementById(location.hash.slice(1));
  openTo(node);
  if (node) node.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(openTo));
