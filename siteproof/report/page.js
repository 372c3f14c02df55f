"use strict";
// Sorts a table by the column whose heading is chosen, and shows only the rows that have a text.
// The page is whole without it.
(() => {
  const text = (cell) => cell.textContent.trim();
  const quantity = /^[\u2265\u2264<>= ]*([-+]?\d+(?:\.\d+)?)(?: [^\d\s]\S*)?$/;
  const compare = (a, b) => {
    const [x, y] = [a.match(quantity), b.match(quantity)];
    return x && y ? x[1] - y[1] : a.localeCompare(b, "en", { numeric: true });
  };
  const sort = (table, column, heading) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    const rows = [...table.tBodies[0].rows];
    const sign = down ? -1 : 1;
    rows.sort((a, b) => sign * compare(text(a.cells[column]), text(b.cells[column])));
    table.tBodies[0].append(...rows);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  const button = (table, column, heading) => {
    const made = document.createElement("button");
    made.type = "button";
    made.append(...heading.childNodes);
    made.addEventListener("click", () => sort(table, column, heading));
    heading.append(made);
  };
  const filter = (table) => {
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "rows with \u2026";
    field.setAttribute("aria-label", "Show only the rows that have this text");
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      }
    });
    table.parentNode.before(field);
  };
  for (const table of document.querySelectorAll("table")) {
    if (table.tBodies[0].rows.length < 3) continue;
    [...table.tHead.rows[0].cells].forEach((heading, column) => button(table, column, heading));
    if (table.tBodies[0].rows.length > 8) filter(table);
  }
})();
