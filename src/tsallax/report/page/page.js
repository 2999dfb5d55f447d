// The page of `tsallax report`: which curves are shown and how, and the sections beside them.

const DATA = JSON.parse(document.getElementById("data").textContent);
const MOST = 30; // curves in a chart that can still be told apart
const KINDS = {
  iqm: { name: "IQM, 95 % interval", words: ["IQM", "95 %", "seeds"] },
  mean: { name: "mean \u00b1 standard deviation", words: ["mean", "sd", "seeds"] },
};
const VERDICTS = { holds: ["good", "\u2713"], "does not hold": ["bad", "\u2717"] };
const state = { set: 0, env: 0, metric: "", kind: "iqm", panel: -1, log: false, off: new Set() };
const $ = (id) => document.getElementById(id);
const range = (low, high) => `${number(low)} to ${number(high)}`;

// Settings: `at` has, for each facet (environment, algorithm, ...), which of its values.

const chosen = () => DATA.sets[state.set];
const environment = () => chosen().facets[0].values[state.env];
const metricName = () => DATA.metrics.find(([name]) => name === state.metric)[1];

function free(set) {
  return set.facets.map((_, i) => i).filter((i) => i && set.facets[i].values.length > 1);
}

function word(i, setting) {
  const { name, values } = chosen().facets[i];
  const value = values[setting.at[i]];
  return name === "algo" || name === "policy" || !value ? value : `${name} = ${value}`;
}

function label(setting, without = -1) {
  const words = free(chosen()).filter((i) => i !== without).map((i) => word(i, setting));
  return words.filter(Boolean).join(", ") || word(1, setting);
}

function shown() {
  const on = (v, i) => (i ? !state.off.has(`${i}:${v}`) : v === state.env);
  return chosen().curves.filter((setting) => setting.at.every(on));
}

// Colour and mark by the first facet that varies, the line by all others: neither is needed alone.
function styles(set) {
  const [first, ...others] = free(set).filter((i) => i !== state.panel);
  const rest = (setting) => others.map((i) => setting.at[i]).join();
  const order = [...new Set(set.curves.map(rest))];
  return (setting) => {
    const i = first === undefined ? 0 : setting.at[first];
    const color = DATA.palette[i % DATA.palette.length];
    const line = order.indexOf(rest(setting)) + Math.floor(i / DATA.palette.length);
    return {
      color: color === "#000000" ? "currentColor" : color, // black is white on a dark page
      mark: MARKS[i % MARKS.length],
      dash: DASHES[line % DASHES.length],
    };
  };
}

function series(setting, style) {
  const { iqm, low, high, mean, sd, n } = setting.bands[state.metric];
  const own = { name: label(setting, state.panel), style: style(setting), steps: setting.steps, n };
  if (state.kind === "iqm") {
    const told = (i) => (low[i] === null ? "" : range(low[i], high[i]));
    return { ...own, mid: iqm, low, high, told };
  }
  const shift = (sign) => mean.map((m, i) => (sd[i] === null ? null : m + sign * sd[i]));
  const told = (i) => (sd[i] === null ? "" : `\u00b1 ${number(sd[i])}`);
  return { ...own, mid: mean, low: shift(-1), high: shift(1), told };
}

function draw() {
  const charts = $("charts");
  const style = styles(chosen());
  const panels = new Map();
  for (const setting of shown().filter((s) => s.bands[state.metric])) {
    const key = state.panel < 0 ? 0 : setting.at[state.panel];
    const title = state.panel < 0 ? "" : word(state.panel, setting) || "left open";
    if (!panels.has(key)) panels.set(key, { title, own: [] });
    panels.get(key).own.push(series(setting, style));
  }
  const all = [...panels.entries()].sort(([a], [b]) => a - b).map(([, panel]) => panel);
  const size = extent(all.flatMap((panel) => panel.own), state.log);
  const columns = all.length > 1 && charts.clientWidth > 760 ? 2 : 1;
  const width = Math.floor((charts.clientWidth - 16 * (columns - 1)) / columns);
  const drawn = all.map(({ title, own }) => {
    const words = [metricName(), environment(), title].filter(Boolean).join(", ");
    const cut = `${MOST} of ${own.length} curves are drawn; the table has all of them.`;
    return el("div", {},
      chart(words, own.slice(0, MOST), size, width, KINDS[state.kind].words),
      ...(own.length > MOST ? [el("p", { class: "dim" }, cut)] : []));
  });
  charts.className = columns > 1 ? "two" : "";
  const none = el("p", { class: "dim" }, "No curve is chosen, or none has this metric.");
  charts.replaceChildren(...(drawn.length ? drawn : [none]));
  scores();
  pairs();
}

function scores() {
  const rows = shown().map((s) => ({ s, f: s.finals[state.metric] }));
  rows.sort((a, b) => (b.f?.iqm ?? -Infinity) - (a.f?.iqm ?? -Infinity));
  const ends = rows.flatMap(({ f }) => (f ? [f.low ?? f.iqm, f.high ?? f.iqm] : []));
  const [from, to] = [Math.min(...ends), Math.max(...ends)];
  const body = rows.map(({ s, f }) => {
    const late = s.seeds - s.whole;
    const notes = [s.diverged && `${s.diverged} diverged`, late && `${late} not at the end`];
    const seeds = [tight(`${f?.n ?? 0} of ${s.seeds}`), wide(notes.filter(Boolean).join(", "))];
    if (!f) return [wide(label(s)), tight(NONE), "", "", tight(NONE), ...seeds];
    const one = f.low === undefined;
    return [
      wide(label(s)), tight(number(f.iqm)), tight(one ? "" : range(f.low, f.high)),
      whisker([f.iqm, f.low ?? null, f.high], from, to),
      tight(number(f.mean), one ? "" : ` \u00b1 ${number(f.sd)}`), ...seeds,
    ];
  });
  const head = ["setting", "IQM", "95 %", "", "mean \u00b1 sd", "seeds", "notes"];
  const caption = `${metricName()}, last fifth of each run, ${environment()}`;
  $("scores").lastElementChild.replaceChildren(
    table(head, body, { name: "final scores", caption, tall: rows.length > 25 }));
}

function pairs() {
  const { curves, pairs: every } = chosen();
  const on = new Set(shown());
  const rows = every
    .filter(({ a, b }) => on.has(curves[a]) && on.has(curves[b]))
    .map(({ a, b, p: [p, low, high] }) =>
      (p < 0.5 ? [b, a, 1 - p, 1 - high, 1 - low] : [a, b, p, low, high]))
    .map(([a, b, p, low, high]) => [
      wide(label(curves[a])), wide(label(curves[b])), tight(p.toFixed(2)),
      tight(`${low.toFixed(2)} to ${high.toFixed(2)}`), whisker([p, low, high], 0, 1, 0.5),
      tight([a, b].map((i) => curves[i].finals.episode_return.n).join(", ")),
    ]);
  const caption = `final returns, ${environment()}; A is the better one of the two`;
  $("pairs").hidden = !rows.length;
  $("pairs").lastElementChild.replaceChildren(
    table(["A", "B", "P(A > B)", "95 %", "0 to 1", "seeds"], rows,
      { name: "probability of improvement", caption, tall: rows.length > 25 }));
}

// Switches

function set(name, value) {
  state[name] = value;
  draw();
}

function choice(name, options, value, change) {
  const id = `choice-${name.replaceAll(" ", "-")}`;
  const each = options.map(([key, text]) => el("option", { value: key }, text));
  const select = el("select", { id }, ...each);
  select.value = value;
  select.addEventListener("change", () => change(select.value));
  return el("div", {}, el("label", { for: id }, name), select);
}

function tick(type, name, text, on, change) {
  const input = el("input", { type, name });
  input.checked = on;
  input.addEventListener("change", () => change(input.checked));
  return el("label", {}, input, text);
}

function facet(i) {
  const { name, values } = chosen().facets[i];
  const turn = (v, on) => state.off[on ? "delete" : "add"](`${i}:${v}`);
  const boxes = values.map((value, v) =>
    tick("checkbox", `facet-${i}`, value || "left open", true, (on) => { turn(v, on); draw(); }));
  const button = (text, on) => {
    const all = el("button", { type: "button" }, text);
    all.addEventListener("click", () => {
      values.forEach((_, v) => turn(v, on));
      for (const box of boxes) box.firstChild.checked = on;
      draw();
    });
    return all;
  };
  return el("fieldset", {}, el("legend", {}, name === "algo" ? "algorithm" : name),
    ...(values.length > 3 ? [button("all", true), button("none", false)] : []), ...boxes);
}

function switches() {
  const { facets, curves } = chosen();
  const metrics = DATA.metrics.filter(([name]) => curves.some((s) => s.bands[name]));
  const open = free(chosen());
  if (!metrics.some(([name]) => name === state.metric)) state.metric = metrics[0][0];
  state.panel = shown().length > 6 && open.length > 1 ? open[1] : -1;
  const sets = DATA.sets.map(({ title }, i) => [i, title]);
  const change = (name, read = String) => (value) => set(name, read(value));
  const by = [[-1, "environment"], ...open.map((i) => [i, facets[i].name])];
  $("switches").replaceChildren(
    ...(sets.length > 1 ? [choice("results", sets, state.set, (i) => start(Number(i)))] : []),
    choice("environment", facets[0].values.map((v, i) => [i, v]), state.env, change("env", Number)),
    choice("metric", metrics, state.metric, change("metric")),
    choice("one chart for each", by, state.panel, change("panel", Number)),
    el("fieldset", {}, el("legend", {}, "curves"),
      ...Object.entries(KINDS).map(([kind, { name }]) =>
        tick("radio", "kind", name, state.kind === kind, () => set("kind", kind))),
      tick("checkbox", "log", "logarithmic", state.log, (on) => set("log", on))),
    ...open.map(facet));
}

function start(index) {
  Object.assign(state, { set: index, env: 0, off: new Set() });
  const focused = $("switches").contains(document.activeElement);
  switches();
  if (focused) $("switches").querySelector("select").focus();
  draw();
}

// Sections that stay as they are

function show(id, ...nodes) {
  $(id).append(...nodes);
  $(id).hidden = false;
}

function claims({ scale, rows }) {
  const name = (r) => wide(`${r.claim} ${r.text}`);
  const verdict = (r) => {
    const [kind, sign] = VERDICTS[r.verdict] ?? ["dim", "?"];
    return el("td", { class: `n ${kind}` }, `${sign} ${r.verdict}`);
  };
  const checks = (r) => el("ul", {}, ...r.checks.map((c) => el("li", {}, c)));
  const judged = rows.filter((r) => !r.missing)
    .map((r) => [name(r), r.reading, verdict(r), checks(r)]);
  const missing = rows.filter((r) => r.missing).map((r) => [name(r), r.reading, r.missing]);
  show("claims",
    table(["claim", "reading", "verdict", "what was measured"], judged,
      { name: `claims, ${scale}`, caption: `scale: ${scale}`, tall: true }),
    el("details", {}, el("summary", {}, `Not judged for lack of runs: ${missing.length}`),
      table(["claim", "reading", "why"], missing, { name: `not judged, ${scale}`, tall: true })));
}

function clip({ name, kind, data }) {
  const node = kind.startsWith("video/")
    ? el("video", { controls: "", "aria-label": name })
    : el("img", { class: "clip", alt: name });
  const box = el("details", {}, el("summary", {}, name), node);
  const load = () => { node.src = `data:${kind};base64,${data}`; };
  box.addEventListener("toggle", load, { once: true }); // nothing moves before it is asked to
  return box;
}

function configurations() {
  const count = ([value, n]) => `${value || "left open"} (${n} ${n === 1 ? "run" : "runs"})`;
  const differ = DATA.differ.map(([name, values]) => [name, values.map(count).join(", ")]);
  const head = ["run", "status", "cells", "notes", ...DATA.differ.map(([name]) => name)];
  const runs = DATA.runs.map((r) =>
    [wide(r.name), tight(r.status), tight(r.seeds), wide(r.notes.join("; ")), ...r.values]);
  const fold = (text, node) => el("details", {}, el("summary", {}, text), node);
  show("configs",
    differ.length
      ? table(["what differs", "values"], differ, { name: "what differs" })
      : el("p", {}, "All runs have the same configuration."),
    fold(`Common to all: ${DATA.common.length} fields`,
      table(["field", "value"], DATA.common, { name: "common to all", tall: true })),
    fold(`Every run: ${runs.length}`, table(head, runs, { name: "every run", tall: true })));
}

function theme() {
  const root = document.documentElement;
  const other = { dark: "light", light: "dark" };
  let now = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const say = () => { $("theme").textContent = now === "dark" ? "Light page" : "Dark page"; };
  $("theme").addEventListener("click", () => {
    now = other[now];
    root.dataset.theme = now;
    say();
  });
  say();
}

theme();
const counts = [["run", "", DATA.runs.length], ["table", " of results", DATA.studies.length]];
const made = counts.filter(([, , n]) => n)
  .map(([noun, rest, n]) => `${n} ${noun}${n === 1 ? "" : "s"}${rest}`).join(", ");
$("about").textContent = `${made}; tsallax ${DATA.version}`;
if (DATA.problems.length) {
  const rows = DATA.problems.map(([name, what]) => [wide(name), what]);
  show("problems", table(["where", "what"], rows, { name: "not whole", tall: rows.length > 8 }));
  $("about").append("; ", el("a", { href: "#problems" }, `not whole: ${rows.length}`));
}
show("curves");
show("scores");
DATA.claims.forEach(claims);
if (DATA.clips.length) show("clips", ...DATA.clips.map(clip));
if (DATA.runs.length) configurations();
if (DATA.studies.length) {
  const rows = DATA.studies.map(([name, title, ...rest]) =>
    [wide(name), wide(title), ...rest.map((text) => tight(text))]);
  show("studies", table(["results", ...DATA.made], rows, { name: "studies" }));
}
start(0);
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) requestAnimationFrame(draw); // a phone's bars change the height alone
  width = innerWidth;
});
