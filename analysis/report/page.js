"use strict";
// A third click restores the order of the file, which is that of the configuration.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const values = new Map(original.map((row) => [row, number(row.cells[column].dataset.v)]));
    const numeric = [...values.values()].some((v) => typeof v === "number");
    const order = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const next = order[(order.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    if (next) head.setAttribute("aria-sort", next);
    body.append(...(next ? sorted(original, values, numeric, next === "descending") : original));
  }));
}
// The number that a cell begins with, such as that of "+0.7*" or "43.2 ±0.4", else its text.
function number(text) {
  const found = Number.parseFloat(text);
  return Number.isNaN(found) ? text : found;
}
function sorted(rows, values, numeric, down) {
  const known = (row) => !numeric || typeof values.get(row) === "number";
  const compare = (a, b) => numeric ? values.get(a) - values.get(b)
    : values.get(a).localeCompare(values.get(b), "en", { numeric: true });
  const full = rows.filter(known).sort((a, b) => (down ? compare(b, a) : compare(a, b)));
  return [...full, ...rows.filter((row) => !known(row))]; // what has no value stays at the end
}
// Links open the sections that they point into; printing opens all.
const reveal = () => {
  const node = document.getElementById(location.hash.slice(1));
  if (node && node.tagName === "DETAILS") node.open = true;
};
addEventListener("hashchange", reveal);
reveal();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
