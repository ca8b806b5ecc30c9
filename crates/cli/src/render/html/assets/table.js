// The table of parameters: the first rows, more on demand; sorted by clicking a heading, filtered by name.
(() => {
  "use strict";
  const FIRST = 40;
  const MORE = 200;
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const find = (id) => document.getElementById(id);
  const { columns, rows } = JSON.parse(find("parameters-data").textContent);
  const [head, body] = [find("table").tHead, find("table").tBodies[0]];
  const state = { column: -1, descending: false, filter: "", shown: FIRST };

  // Insert text as text, never as markup: names come from the model.
  const element = (name, attributes = {}, text = undefined) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // The markup contains only numbers.
  const picture = ({ heights, bars, marks, label }) => {
    const height = [...heights].map((letter) => LETTERS.indexOf(letter) / 63);
    const step = 116 / (bars ? height.length : height.length - 1);
    const y = (h) => (22 - 20 * h).toFixed(1);
    const x = (i) => (2 + step * i).toFixed(1);
    const width = Math.min(step > 3 ? step - 1 : step, 12);
    const left = (i) => x(i + (step - width) / (2 * step));
    const path = bars
      ? height.map((h, i) => (h > 0 ? `M${left(i)} 22V${y(h)}h${width.toFixed(1)}V22Z` : "")).join("")
      : `M2 22${height.map((h, i) => `L${x(i)} ${y(h)}`).join("")}L118 22Z`;
    const [low, middle, high] = marks.map((mark) => (2 + (116 * mark) / 1000).toFixed(1));
    const cell = element("td", { class: "shape" });
    cell.innerHTML = `<svg class="shape" viewBox="0 0 120 30" role="img"><title></title>
      <path class="${bars ? "bars" : "area"}" d="${path}"/><path class="interval" d="M${low} 26.5H${high}"/>
      <circle cx="${middle}" cy="26.5" r="2.2"/></svg>`;
    cell.firstElementChild.setAttribute("aria-label", label);
    cell.querySelector("title").textContent = label;
    return cell;
  };

  const row = ({ name, cells, shape }) => {
    const made = element("tr");
    made.append(element("th", { scope: "row" }, name));
    made.append(shape ? picture(shape) : element("td", { class: "shape" }));
    cells.forEach((text, i) => {
      made.append(element("td", { class: "number " + kind(i) }, text.replaceAll("-", "−")));
    });
    return made;
  };
  // Columns hidden on a narrow screen.
  const kind = (i) => (["median", "mcse", "ess"].includes(columns[i]) ? "minor" : "");

  const number = (text) => ({ "∞": Infinity, "-∞": -Infinity })[text] ?? parseFloat(text);
  const ordered = () => {
    const wanted = state.filter.toLowerCase();
    const kept = rows.filter(({ name }) => name.toLowerCase().includes(wanted));
    if (state.column < 0) return kept;
    const sign = state.descending ? -1 : 1;
    if (state.column === 0) {
      const by = new Intl.Collator("en", { numeric: true });
      return kept.sort((a, b) => sign * by.compare(a.name, b.name));
    }
    const value = new Map(kept.map((r) => [r, number(r.cells[state.column - 1])]));
    return kept.sort((a, b) => {
      const [x, y] = [value.get(a), value.get(b)];
      // Rows without a number come last in either order.
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return x === y ? 0 : x < y ? -sign : sign;
    });
  };

  const grouped = (n) => n.toLocaleString("en");
  const show = () => {
    const kept = ordered();
    const shown = kept.slice(0, state.shown);
    body.replaceChildren(...shown.map(row));
    const of = kept.length === rows.length ? grouped(rows.length) : `${grouped(kept.length)} of ${grouped(rows.length)}`;
    find("count").textContent = `${of} ${rows.length === 1 ? "parameter" : "parameters"}`;
    const left = kept.length - shown.length;
    find("more").hidden = left <= 0;
    find("all").hidden = left <= MORE;
    find("more").textContent = `Show ${grouped(Math.min(left, MORE))} more`;
    find("all").textContent = `Show all ${grouped(kept.length)}`;
    head.querySelectorAll("th[aria-sort]").forEach((th, i) => {
      const direction = state.descending ? "descending" : "ascending";
      th.setAttribute("aria-sort", i === state.column ? direction : "none");
    });
  };

  // Ascending, descending, and back to the order of the model.
  const sort = (column) => {
    if (state.column !== column) Object.assign(state, { column, descending: false });
    else if (!state.descending) state.descending = true;
    else Object.assign(state, { column: -1, descending: false });
    show();
  };
  const heading = (text, column, className) => {
    const th = element("th", { scope: "col", "aria-sort": "none", class: className });
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", () => sort(column));
    th.append(button);
    return th;
  };
  const line = element("tr");
  line.append(heading("name", 0, ""));
  line.append(element("th", { scope: "col", class: "shape" }, "posterior"));
  columns.forEach((text, i) => line.append(heading(text, i + 1, "number " + kind(i))));
  head.append(line);

  find("filter").addEventListener("input", (event) => {
    Object.assign(state, { filter: event.target.value.trim(), shown: FIRST });
    show();
  });
  find("more").addEventListener("click", () => {
    state.shown += MORE;
    show();
  });
  find("all").addEventListener("click", () => {
    state.shown = Infinity;
    show();
  });
  show();
})();
