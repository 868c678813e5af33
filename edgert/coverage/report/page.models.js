"use strict";
// The view of whole models: a matrix of models by devices, then a page for each model. Comes before page.js.
const PLACES = { device: "supported", partly: "partly", cpu: "cpu", rejected: "refused", unknown: "unknown" };
const RUNS_WITH_SIGN = 0.02; // of a strip's width: below that a sign would not fit

function percent(share) { return typeof share === "number" ? `${(share * 100).toFixed(1)} %` : ""; }
function plural(count, what) { return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`; }
function small(error) {
  if (typeof error !== "number") return "";
  return error && error < 1e-3 ? error.toExponential(2) : String(error);
}
function bytes(size) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let at = 0;
  while (size >= 1024 && at < units.length - 1) { size /= 1024; at += 1; }
  return `${at ? size.toFixed(1) : size} ${units[at]}`;
}
function wasNotRun(model) { return model.verdict === "unknown" && !model.nodes.length; }
function word(model) { return wasNotRun(model) ? "not run" : model.verdict; }
function meaning(model) {
  return wasNotRun(model) ? "the device was not asked: nothing is known of this model there" : data.meanings[model.verdict];
}
function placeOf(model, node) {
  return node.placement === "device" && model.evidence === "static-list" ? "listed" : PLACES[node.placement];
}
function bar(share, what) {
  if (typeof share !== "number") return null;
  return element("div", { class: "share" },
    element("span", { class: "bar", "aria-hidden": "true" }, element("i", { style: `width:${share * 100}%` })),
    `${percent(share)} of ${what}`);
}
function crossings(model) {
  if (!model.nodes.length) return "";
  if (model.crossings === null) return "not told";
  if (!model.crossings.length) return "none";
  const known = model.crossings.every((each) => typeof each.size_bytes === "number");
  const moved = model.crossings.reduce((sum, each) => sum + (each.size_bytes ?? 0), 0);
  return `${plural(model.crossings.length, "tensor")}, ${known ? bytes(moved) : "of unknown size"}`;
}

// The matrix of models by devices.
function drawModelMatrix(names, devices, find, open) {
  const head = element("tr", {}, element("th", {}, "model"), ...devices.map((device) => element("th", { scope: "col" }, device)));
  const body = names.map((name) => element("tr", {},
    element("th", { scope: "row" }, element("button", { type: "button", onclick: () => open(name) }, name)),
    ...devices.map((device) => matrixCell(find(name, device)))));
  return element("table", { class: "matrix" }, element("thead", {}, head), element("tbody", {}, ...body));
}
function matrixCell(model) {
  if (!model) return element("td", { class: "absent" }, "not asked");
  return element("td", { class: model.verdict, title: meaning(model) },
    element("strong", {}, `${sign(model.verdict)} ${word(model)}`),
    bar(model.share_of_nodes, "nodes"), bar(model.share_of_macs, "MACs"),
    model.reason ? element("p", { class: "why" }, model.reason) : null);
}

// The page of one model: its devices side by side.
function drawModelPage(name, found) {
  const shown = found.filter((model) => model.nodes.length);
  return element("article", { class: "model" }, element("h2", {}, name),
    element("p", { class: "hash" }, `sha256 ${[...new Set(found.map((model) => model.sha256).filter(Boolean))].join(", ") || "not known"}`),
    drawFacts(found),
    ...(shown.length ? [element("h3", {}, "Where its nodes run"), drawStrips(shown), drawOperatorsOf(shown)] : []),
    drawRefused(found), ...shown.map(drawNodes));
}
function drawFacts(found) {
  const figures = [
    ["verdict", (model) => badge(model.verdict, word(model))],
    ["placement", (model) => (wasNotRun(model) ? "" : model.placement)],
    ["evidence", (model) => model.evidence],
    ["nodes on the device", (model) => bar(model.share_of_nodes, plural(model.nodes.length, "node"))],
    ["MACs on the device", (model) => bar(model.share_of_macs, "MACs")],
    ["parts", (model) => figure(model.partitions)],
    ["crossings", crossings],
    ["numerics", (model) => model.numerics],
    ["largest error", (model) => small(model.max_error)],
    ["latency", (model) => (typeof model.latency_ms === "number" ? `${model.latency_ms} ms` : "")],
    ["why", (model) => model.reason],
    ["mend", (model) => model.mend],
  ];
  const head = element("tr", {}, element("td", {}), ...found.map((model) => element("th", { scope: "col" }, model.device)));
  const rows = figures.map(([name, say]) => [name, found.map((model) => say(model) || "")])
    .filter(([, said]) => said.some(Boolean))
    .map(([name, said]) => element("tr", {}, element("th", { scope: "row" }, name),
      ...said.map((each, at) => element("td", { class: name === "verdict" ? found[at].verdict : "fact" }, each))));
  return element("table", { class: "facts" }, element("thead", {}, head), element("tbody", {}, ...rows));
}
function runsOf(model) {
  const runs = [];
  for (const node of model.nodes) {
    const place = placeOf(model, node), last = runs[runs.length - 1];
    if (last && last.place === place) last.nodes.push(node);
    else runs.push({ place, nodes: [node] });
  }
  return runs;
}
function drawStrips(found) {
  return element("div", { class: "strips" }, ...found.flatMap((model) => [
    element("span", {}, model.device),
    element("div", { class: "strip", role: "img", "aria-label": `${model.device}: ${percent(model.share_of_nodes) || "an unknown share"} of the nodes on the device` },
      ...runsOf(model).map((run) => element("i", {
        class: run.place, style: `flex-grow:${run.nodes.length}`,
        title: `${plural(run.nodes.length, "node")}, ${run.nodes[0].placement}: ${run.nodes.slice(0, 12).map((node) => node.name).join(", ")}${run.nodes.length > 12 ? ", ..." : ""}`,
      }, run.nodes.length / model.nodes.length > RUNS_WITH_SIGN ? sign(run.place) : "")))]),
    element("span", {}), element("small", {}, "the first node at the left; a mark is as wide as its number of nodes"));
}
function drawOperatorsOf(found) {
  const columns = found.map((model) => group(model.nodes, (node) => node.operator));
  const names = [...new Set(columns.flatMap((operators) => [...operators.keys()]))].sort();
  const head = element("tr", {}, element("th", {}, "operator"), ...found.map((model) => element("th", { scope: "col" }, model.device)));
  const rows = names.map((name) => element("tr", {}, element("th", { scope: "row" }, name), ...columns.map((operators, at) => {
    const nodes = operators.get(name);
    if (!nodes) return element("td", { class: "absent" });
    const there = nodes.filter((node) => node.placement === "device").length;
    const places = new Set(nodes.map((node) => placeOf(found[at], node)));
    const place = places.size === 1 ? [...places][0] : "partly";
    return element("td", { class: place }, `${sign(place)} ${there}/${nodes.length}`);
  })));
  return element("details", { open: "" }, element("summary", {}, "By operator: nodes on the device, of all"),
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
function drawRefused(found) {
  const rows = found.flatMap((model) => model.refused.map((each) => element("tr", {},
    element("td", {}, model.device), element("td", {}, each.operator), element("td", { class: "number" }, figure(each.nodes)),
    element("td", { class: "number" }, each.macs ? each.macs.toLocaleString("en") : ""),
    element("td", { class: "reason" }, each.reason || "no reason given"), element("td", { class: "reason" }, each.mend))));
  if (!rows.length) return null;
  return element("div", {}, element("h3", {}, "Not on the device, the costliest first"),
    element("table", {}, element("thead", {}, element("tr", {}, ...["device", "operator", "nodes", "MACs", "reason", "mend"].map((name) => element("th", {}, name)))),
      element("tbody", {}, ...rows)));
}
function drawNodes(model) {
  const columns = [["node", (node) => node.name], ["operator", (node) => node.operator], ["placement", (node) => node.placement],
    ["part", (node) => figure(node.partition)], ["MACs", (node) => (node.macs ? node.macs.toLocaleString("en") : "")],
    ["cycles", (node) => (node.cycles ? node.cycles.toLocaleString("en") : "")], ["moved, KiB", (node) => figure(node.moved_kib)],
    ["reason", (node) => node.reason]].filter(([, say]) => model.nodes.some(say));
  const made = element("details", { class: "nodes", ontoggle: () => {
    if (made.childElementCount > 1) return; // drawn when first opened: a model has hundreds
    made.append(element("table", {}, element("thead", {}, element("tr", {}, ...columns.map(([name]) => element("th", {}, name)))),
      element("tbody", {}, ...model.nodes.map((node) => element("tr", {}, ...columns.map(([name, say]) =>
        element("td", { class: name === "placement" ? placeOf(model, node) : name }, name === "placement" ? `${sign(placeOf(model, node))} ${say(node)}` : say(node))))))));
  } }, element("summary", {}, `${model.device}: all ${plural(model.nodes.length, "node")}`));
  return made;
}

function drawModels() {
  const wanted = { device: $("device").value, verdict: $("verdict").value, word: $("search").value.toLowerCase() };
  const found = data.models.filter((each) => (!wanted.device || each.device === wanted.device) &&
    (!wanted.verdict || each.verdict === wanted.verdict) &&
    `${each.model} ${each.reason} ${each.refused.map((one) => one.operator).join(" ")}`.toLowerCase().includes(wanted.word));
  $("count").textContent = `${found.length} of ${plural(data.models.length, "answer")}`;
  const pages = group(found, (each) => each.model), devices = [...new Set(found.map((each) => each.device))];
  const names = pages.has(state.model) ? [state.model] : [...pages.keys()];
  const open = (name) => { state.model = name; draw(); $("view").focus(); };
  const all = pages.has(state.model) ? element("p", {}, element("button", { type: "button", onclick: () => open("") }, "← all models")) : null;
  const find = (name, device) => pages.get(name).find((each) => each.device === device);
  return element("div", {}, all ?? drawModelMatrix(names, devices, find, open), ...names.map((name) => drawModelPage(name, pages.get(name))));
}
