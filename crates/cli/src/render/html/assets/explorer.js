// The topics from the top layer down to words, the documents in which they are most active, and a search over both.
(() => {
  "use strict";
  const RESULTS = 30;
  const LABEL_WORDS = 5;
  const find = (id) => document.getElementById(id);
  const { layers, documents } = JSON.parse(find("explorer-data").textContent);
  const [tree, detail, results] = [find("tree"), find("detail"), find("results")];

  // Insert text as text, never as markup: words and names come from the corpus.
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const called = (layer, place) =>
    layer === 0 ? `Topic ${place + 1}` : `Theme ${place + 1}${layers.length > 2 ? ` of layer ${layer + 1}` : ""}`;
  const words = (layer, place) => layers[layer][place].words.slice(0, LABEL_WORDS).map(([word]) => word).join(" ");
  const percent = (x) => `${(100 * x).toFixed(1)} %`;
  const figures = (x) => (x >= 100 ? x.toFixed(0) : x.toPrecision(3)).replace("-", "−");

  // The tree. A branch is built when it is first opened.
  const items = () => [...tree.querySelectorAll('[role="treeitem"]')].filter((item) => !item.closest("ul[hidden]"));
  const focus = (item) => {
    if (!item) return;
    tree.querySelectorAll('[tabindex="0"]').forEach((other) => other.setAttribute("tabindex", "-1"));
    item.setAttribute("tabindex", "0");
    item.focus();
  };
  const isOpen = (item) => item.getAttribute("aria-expanded") === "true";
  const open = (item, wanted) => {
    if (!item.hasAttribute("aria-expanded")) return;
    const { layer, place } = item.dataset;
    if (wanted && !item.group) {
      item.group = branch(Number(layer), Number(place), Number(item.getAttribute("aria-level")));
      item.append(item.group);
    }
    if (item.group) item.group.hidden = !wanted;
    item.setAttribute("aria-expanded", String(wanted));
  };
  const branch = (layer, place, level) => {
    const { children, words } = layers[layer][place];
    const group = element("ul", { role: "group" });
    if (layer > 0) {
      children.forEach(([child]) => group.append(treeItem(layer - 1, child, level + 1)));
    } else {
      words.forEach(([word, share]) => {
        const own = { role: "treeitem", "aria-level": level + 1, tabindex: "-1", class: "word" };
        group.append(element("li", own, element("span", { class: "label" }, word, element("small", {}, percent(share)))));
      });
    }
    return group;
  };
  const treeItem = (layer, place, level) => {
    const name = called(layer, place);
    const own = {
      role: "treeitem",
      "aria-level": level,
      "aria-expanded": "false",
      "aria-label": `${name}: ${words(layer, place)}`,
      tabindex: "-1",
      "data-layer": layer,
      "data-place": place,
    };
    const label = element("span", { class: "label" }, element("b", {}, name), " ", words(layer, place));
    return element("li", own, element("span", { class: "arrow", "aria-hidden": "true" }), label);
  };
  // On a narrow screen the details are below the tree, and a click scrolls to them.
  const isNarrow = () => window.matchMedia("(max-width: 48rem)").matches;
  const chosen = (item, isMoved = false) => {
    tree.querySelectorAll('[aria-selected="true"]').forEach((other) => other.removeAttribute("aria-selected"));
    if (item.dataset.layer === undefined) return;
    item.setAttribute("aria-selected", "true");
    showTopic(Number(item.dataset.layer), Number(item.dataset.place), isMoved);
  };
  tree.addEventListener("click", (event) => {
    const item = event.target.closest('[role="treeitem"]');
    if (!item) return;
    const isArrow = event.target.classList.contains("arrow");
    open(item, isArrow ? !isOpen(item) : !isOpen(item) || item.getAttribute("aria-selected") !== "true");
    if (!isArrow) chosen(item, isNarrow());
    if (isArrow || !isNarrow()) focus(item);
  });
  tree.addEventListener("keydown", (event) => {
    const item = event.target.closest('[role="treeitem"]');
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = items();
    const at = all.indexOf(item);
    const parent = item.parentElement.closest('[role="treeitem"]');
    const moves = {
      ArrowDown: () => focus(all[at + 1]),
      ArrowUp: () => focus(all[at - 1]),
      Home: () => focus(all[0]),
      End: () => focus(all[all.length - 1]),
      ArrowRight: () => (item.hasAttribute("aria-expanded") && !isOpen(item) ? open(item, true) : focus(all[at + 1])),
      ArrowLeft: () => (isOpen(item) ? open(item, false) : focus(parent)),
      Enter: () => chosen(item),
      " ": () => chosen(item),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  });
  // A topic that no theme raises is shown at the top level.
  for (let layer = layers.length - 1; layer >= 0; layer -= 1) {
    layers[layer].forEach((node, place) => {
      if (layer === layers.length - 1 || node.parents.length === 0) tree.append(treeItem(layer, place, 1));
    });
  }
  const first = tree.firstElementChild;
  if (first) first.setAttribute("tabindex", "0");
  const all = (wanted) => {
    // Opening an item builds those below it.
    for (let layer = layers.length - 1; layer >= (wanted ? 1 : 0); layer -= 1) {
      tree.querySelectorAll(`[data-layer="${layer}"]`).forEach((item) => open(item, wanted));
    }
  };
  find("open").addEventListener("click", () => all(true));
  find("close").addEventListener("click", () => {
    all(false);
    if (first) focus(first);
  });

  // The details of a topic or a document.
  const link = (text, act) => {
    const button = element("button", { type: "button", class: "link" }, text);
    button.addEventListener("click", act);
    return button;
  };
  const bars = (rows) => {
    const most = Math.max(...rows.map(([, value]) => value), 1e-300);
    const list = element("ul", { class: "measured" });
    rows.forEach(([label, value, text]) => {
      const bar = element("i", { "aria-hidden": "true" });
      bar.style.width = `${Math.max((100 * value) / most, 0.5)}%`;
      list.append(element("li", {}, element("span", {}, label), element("small", {}, text), bar));
    });
    return list;
  };
  const part = (heading, rows) => (rows.length ? [element("h4", {}, heading), bars(rows)] : []);
  const showDetail = (heading, note, parts, isMoved) => {
    const back = link("Back to all topics", () => focus(tree.querySelector('[aria-selected="true"]') ?? first));
    back.classList.add("back");
    detail.replaceChildren(element("h3", {}, heading), element("p", { class: "note" }, note), ...parts.flat(), back);
    if (!isMoved) return;
    detail.focus({ preventScroll: true });
    detail.scrollIntoView({ block: isNarrow() ? "start" : "nearest" });
  };
  const topicLink = (layer, place) =>
    link(`${called(layer, place)}: ${words(layer, place)}`, () => showTopic(layer, place, true));
  const showTopic = (layer, place, isMoved) => {
    const node = layers[layer][place];
    const note = layer === 0 ? `${percent(node.size)} of all words` : `mean activity ${figures(node.size)}`;
    const topics = (list, at) => list.map(([other, weight]) => [topicLink(at, other), weight, figures(weight)]);
    const where = layer === 0 ? "Most active in" : "Its topics are most active in";
    showDetail(
      called(layer, place),
      note,
      [
        part("Words", node.words.map(([word, share]) => [word, share, percent(share)])),
        part("Raises", topics(node.children, layer - 1)),
        part("Raised by", topics(node.parents, layer + 1)),
        part(
          where,
          node.documents.map(([d, active]) => [link(documents[d].name, () => showDocument(d)), active, figures(active)]),
        ),
      ],
      isMoved,
    );
  };
  const showDocument = (d) => {
    const { name, heldout, topics } = documents[d];
    const note = heldout ? "held-out document" : "training document";
    const rows = topics.map(([place, share]) => [topicLink(0, place), share, percent(share)]);
    showDetail(name, note, [part("Shares of its topics", rows)], true);
  };
  if (first) {
    first.setAttribute("aria-selected", "true");
    showTopic(Number(first.dataset.layer), Number(first.dataset.place), false);
    open(first, true);
  }

  // Search: topics with a word that starts with the text, and documents whose name contains it.
  find("search").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    results.hidden = wanted === "";
    if (wanted === "") {
      results.replaceChildren();
      find("found").textContent = "";
      return;
    }
    const found = [];
    layers.forEach((nodes, layer) =>
      nodes.forEach((node, place) => {
        if (node.words.some(([word]) => word.toLowerCase().startsWith(wanted))) found.push(() => topicLink(layer, place));
      }),
    );
    documents.forEach(({ name }, d) => {
      if (name.toLowerCase().includes(wanted)) found.push(() => link(name, () => showDocument(d)));
    });
    results.replaceChildren(...found.slice(0, RESULTS).map((make) => element("li", {}, make())));
    const more = found.length > RESULTS ? `, ${RESULTS} shown` : "";
    find("found").textContent = `${found.length.toLocaleString("en")} found${more}`;
  });
})();
