"use strict";
// The page's data, made by page.py: texts are kept once in `words`, rows are lists of numbers.
const data = JSON.parse(document.getElementById("data").textContent);
const cases = data.cases.map((row) => {
  const text = (index) => data.words[index];
  const [device, name, operator, opset, dtype, form, placement, numerics, evidence, reason, verdict] = row;
  return {
    device: data.devices[device].device, case: text(name), operator: text(operator), opset,
    dtype: text(dtype), form: text(form), placement: text(placement), numerics: text(numerics),
    evidence: text(evidence), reason: text(reason), verdict: data.verdicts[verdict],
    max_error: row[11], mean_error: row[12], latency_ms: row[13],
  };
});
const COLUMNS = ["operator", "case", "form", "dtype", "opset", "device", "verdict", "placement",
  "numerics", "evidence", "max_error", "mean_error", "latency_ms", "reason"];
const NUMBERS = new Set(["opset", "max_error", "mean_error", "latency_ms"]);
const MOST_ROWS = 1000;
const state = { view: data.cases.length ? "operators" : "models", sort: "operator", down: false, model: "" };
const $ = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.map((child) => (child === null || child === undefined ? "" : child)));
  return made;
}
function sign(verdict) { return data.signs[verdict]; }
function badge(verdict, text = "") {
  return element("span", { class: verdict, title: verdict }, `${sign(verdict)} ${text || verdict}`);
}
function figure(value) { return typeof value === "number" ? String(value) : ""; }

function chosen() {
  const words = $("search").value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const verdict = $("verdict").value, form = $("form").value, device = $("device").value;
  return cases.filter((each) =>
    (!verdict || each.verdict === verdict) && (!form || each.form === form) &&
    (!device || each.device === device) &&
    (!words.length || words.some((word) =>
      `${each.operator} ${each.case} ${each.dtype} ${each.reason}`.toLowerCase().includes(word))));
}
function weakest(found) {
  return found.reduce((worst, each) =>
    data.verdicts.indexOf(each.verdict) < data.verdicts.indexOf(worst) ? each.verdict : worst,
    found[0].verdict);
}
function group(found, key) {
  const groups = new Map();
  for (const each of found) {
    const name = key(each);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(each);
  }
  return groups;
}
function drawOperators(found) {
  const columns = [...group(found, (each) => `${each.device}\n${each.form}`).keys()];
  const rows = [...group(found, (each) => each.operator)].sort(([a], [b]) => a.localeCompare(b));
  const head = element("tr", {}, element("th", {}, "operator"),
    ...columns.map((name) => element("th", {}, ...name.split("\n").flatMap((line, index) =>
      index ? [element("br"), line] : [line]))));
  const body = rows.map(([operator, list]) => {
    const cells = group(list, (each) => `${each.device}\n${each.form}`);
    return element("tr", {}, element("th", { scope: "row" }, operator), ...columns.map((name) => {
      const inside = cells.get(name);
      if (!inside) return element("td", {});
      const verdict = weakest(inside);
      const good = inside.filter((each) => each.verdict === "supported" || each.verdict === "listed");
      const show = () => { $("search").value = operator; state.view = "cases"; draw(); };
      return element("td", {
        class: `cell ${verdict}`, title: `${operator}: ${verdict}; show its cases`, tabindex: "0",
        onclick: show, onkeydown: (event) => { if (event.key === "Enter") show(); },
      }, `${sign(verdict)} ${good.length}/${inside.length}`);
    }));
  });
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}
function drawCases(found) {
  const order = (a, b) => {
    const [x, y] = [a[state.sort], b[state.sort]];
    const by = NUMBERS.has(state.sort) ? (x ?? -1) - (y ?? -1) : String(x).localeCompare(String(y));
    return state.down ? -by : by;
  };
  const shown = [...found].sort(order).slice(0, MOST_ROWS);
  const head = element("tr", {}, ...COLUMNS.map((name) => element("th", {
    "aria-sort": state.sort === name ? (state.down ? "descending" : "ascending") : "none" },
    element("button", { type: "button", onclick: () => {
      state.down = state.sort === name && !state.down; state.sort = name; draw(); } }, name))));
  const body = shown.map((each) => element("tr", {}, ...COLUMNS.map((name) => {
    if (name === "verdict") return element("td", { class: each.verdict }, `${sign(each.verdict)} ${each.verdict}`);
    if (NUMBERS.has(name)) return element("td", { class: "number" }, figure(each[name]));
    return element("td", { class: name }, each[name]);
  })));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  if (shown.length === found.length) return table;
  return element("div", {}, element("p", {}, `The first ${MOST_ROWS} of ${found.length}: search or filter for the rest.`), table);
}
function draw() {
  for (const button of document.querySelectorAll("nav button")) {
    button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
  }
  document.body.dataset.view = state.view;
  if (state.view === "models") { $("view").replaceChildren(drawModels()); return; }
  const found = chosen();
  $("count").textContent = `${found.length} of ${cases.length} cases`;
  $("view").replaceChildren(state.view === "cases" ? drawCases(found) : drawOperators(found));
}
function begin() {
  $("about").append(...data.devices.map((each) =>
    element("li", {}, element("strong", {}, each.device), ` ${each.evidence}; ${each.about}`)));
  $("legend").append(...[...data.verdicts].reverse().map((verdict) =>
    element("span", { class: verdict, title: data.meanings[verdict] }, `${sign(verdict)} ${verdict}`)));
  const options = { verdict: data.verdicts, form: [...new Set(cases.map((each) => each.form))],
    device: data.devices.map((each) => each.device) };
  for (const [name, values] of Object.entries(options)) {
    $(name).append(...values.map((value) => element("option", { value }, value)));
    $(name).addEventListener("change", draw);
  }
  $("search").addEventListener("input", draw);
  for (const button of document.querySelectorAll("nav button")) {
    button.hidden = button.dataset.view === "models" ? !data.models.length : !cases.length;
    button.addEventListener("click", () => { state.view = button.dataset.view; state.model = ""; draw(); });
  }
  draw();
}
begin();
