// The page of `tsallax report`: which curves are shown and how. The other sections: sections.js.

const DATA = JSON.parse(document.getElementById("data").textContent);
const MOST = 30; // curves in a chart that can still be told apart
const ALL = -1; // instead of one environment
const KINDS = {
  iqm: { name: "IQM, 95 % interval", words: ["IQM", "95 %", "seeds"] },
  mean: { name: "mean \u00b1 standard deviation", words: ["mean", "sd", "seeds"] },
};
const state = { set: 0, env: 0, metric: "", kind: "iqm", panel: -1, log: false, off: new Set() };
const $ = (id) => document.getElementById(id);
const range = (low, high) => `${number(low)} to ${number(high)}`;

// Settings: `at` has, for each facet (environment, algorithm, ...), which of its values.

const chosen = () => DATA.sets[state.set];
const metricName = () => DATA.metrics.find(([name]) => name === state.metric)[1];
const fieldName = (name) => name.replace(/_$/, "").replaceAll("_", " ");
const fieldValue = (text) => (/^\d{5,}$/.test(text) ? Number(text).toLocaleString("en") : text);

// The settings of the environment, or of all of them.
const here = () =>
  chosen().curves.filter(({ at }) => state.env === ALL || at[0] === state.env);

// The facets that tell those of an environment apart.
function free() {
  const kinds = (i) => new Set(here().map(({ at }) => `${at[0]}:${at[i]}`)).size;
  return chosen().facets.map((_, i) => i).filter((i) => i && kinds(i) > kinds(0));
}

function word(i, setting) {
  const { name, values } = chosen().facets[i];
  const value = fieldValue(values[setting.at[i]]);
  return name === "algo" || name === "policy" || !value ? value : `${fieldName(name)} = ${value}`;
}

function label(setting, without = -1) {
  const words = free().filter((i) => i !== without).map((i) => word(i, setting));
  return words.filter(Boolean).join(", ") || word(1, setting);
}

function shown() {
  return here().filter(({ at }) => at.every((v, i) => !i || !state.off.has(`${i}:${v}`)));
}

// [environment, its shown settings], in order.
function environments() {
  const own = shown();
  return chosen().facets[0].values
    .map((name, v) => [name, own.filter(({ at }) => at[0] === v)])
    .filter(([, some]) => some.length);
}

// Colour and mark by the first facet that varies, the line by all others: neither is needed alone.
function styles() {
  const [first, ...others] = free().filter((i) => i !== state.panel);
  const rest = (setting) => others.map((i) => setting.at[i]).join();
  const order = [...new Set(here().map(rest))];
  const colours = [...new Set(here().map(({ at }) => at[first]))].sort((a, b) => a - b);
  return (setting) => {
    const i = first === undefined ? 0 : colours.indexOf(setting.at[first]);
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

// The charts of an environment, which share their axes.
function panelsOf([environment, settings], style) {
  const panels = new Map();
  for (const setting of settings.filter((s) => s.bands[state.metric])) {
    const key = state.panel < 0 ? 0 : setting.at[state.panel];
    const title = state.panel < 0 ? "" : word(state.panel, setting) || NONE;
    const words = [metricName(), environment, title].filter(Boolean).join(", ");
    if (!panels.has(key)) panels.set(key, { words, own: [] });
    panels.get(key).own.push(series(setting, style));
  }
  const all = [...panels.entries()].sort(([a], [b]) => a - b).map(([, panel]) => panel);
  const size = extent(all.flatMap((panel) => panel.own), state.log);
  return all.map((panel) => ({ ...panel, size }));
}

function draw() {
  const charts = $("charts");
  const style = styles();
  const all = environments().flatMap((each) => panelsOf(each, style));
  const columns = all.length > 1 && charts.clientWidth > 760 ? 2 : 1;
  const width = Math.floor((charts.clientWidth - 16 * (columns - 1)) / columns);
  const drawn = all.map(({ words, own, size }) => {
    const cut = `${MOST} of ${own.length} curves are drawn; the table has all of them.`;
    return el("div", {},
      chart(words, own.slice(0, MOST), size, width, KINDS[state.kind].words),
      ...(own.length > MOST ? [el("p", { class: "dim" }, cut)] : []));
  });
  charts.className = columns > 1 ? "two" : "";
  const none = el("p", { class: "dim" }, "No curve is chosen, or none has this metric.");
  charts.replaceChildren(...(drawn.length ? drawn : [none]));
  $("scores").lastElementChild.replaceChildren(...environments().map(scores));
  const compared = environments().flatMap(pairs);
  $("pairs").hidden = !compared.length;
  $("pairs").lastElementChild.replaceChildren(...compared);
}

function scores([environment, settings]) {
  const rows = settings.map((s) => ({ s, f: s.finals[state.metric] }));
  rows.sort((a, b) => (b.f?.iqm ?? -Infinity) - (a.f?.iqm ?? -Infinity));
  const ends = rows.flatMap(({ f }) => (f ? [f.low ?? f.iqm, f.high ?? f.iqm] : []));
  const [from, to] = [Math.min(...ends), Math.max(...ends)];
  const evaluated = rows.some(({ s }) => s.best !== null);
  const body = rows.map(({ s, f }) => {
    const late = s.seeds - s.whole;
    const notes = [s.diverged && `${s.diverged} diverged`, late && `${late} not at the end`];
    const seeds = [...(evaluated ? [tight(s.best === null ? NONE : number(s.best))] : []),
      tight(`${f?.n ?? 0} of ${s.seeds}`), wide(notes.filter(Boolean).join(", "))];
    if (!f) return [wide(label(s)), tight(NONE), "", "", tight(NONE), ...seeds];
    const one = f.low === undefined;
    return [
      wide(label(s)), tight(number(f.iqm)), tight(one ? "" : range(f.low, f.high)),
      whisker([f.iqm, f.low ?? null, f.high], from, to),
      tight(number(f.mean), one ? "" : ` \u00b1 ${number(f.sd)}`), ...seeds,
    ];
  });
  const head = ["setting", "IQM", "95 %", "", "mean \u00b1 sd",
    ...(evaluated ? ["best evaluation"] : []), "seeds", "notes"];
  const caption = `${metricName()}, mean over the last fifth of each run, ${environment}`;
  return table(head, body,
    { name: `final scores, ${environment}`, caption, tall: rows.length > 25 });
}

function pairs([environment, settings]) {
  const { curves, pairs: every } = chosen();
  const on = new Set(settings);
  const rows = every
    .filter(({ a, b }) => on.has(curves[a]) && on.has(curves[b]))
    .map(({ a, b, p: [p, low, high] }) =>
      (p < 0.5 ? [b, a, 1 - p, 1 - high, 1 - low] : [a, b, p, low, high]))
    .map(([a, b, p, low, high]) => [
      wide(label(curves[a])), wide(label(curves[b])), tight(p.toFixed(2)),
      tight(`${low.toFixed(2)} to ${high.toFixed(2)}`), whisker([p, low, high], 0, 1, 0.5),
      tight([a, b].map((i) => curves[i].finals.episode_return.n).join(", ")),
    ]);
  const caption = `${environment}: A is the better of the two`;
  const name = `probability of improvement, ${environment}`;
  const head = ["A", "B", "P(A > B)", "95 %", "0 to 1", "seeds"];
  return rows.length ? [table(head, rows, { name, caption, tall: rows.length > 25 })] : [];
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
  const own = [...new Set(here().map(({ at }) => at[i]))].sort((a, b) => a - b);
  const boxes = own.map((v) =>
    tick("checkbox", `facet-${i}`, fieldValue(values[v]) || NONE, true,
      (on) => { turn(v, on); draw(); }));
  const button = (text, on) => {
    const all = el("button", { type: "button" }, text);
    all.addEventListener("click", () => {
      for (const v of own) turn(v, on);
      for (const box of boxes) box.firstChild.checked = on;
      draw();
    });
    return all;
  };
  return el("fieldset", {}, el("legend", {}, name === "algo" ? "algorithm" : fieldName(name)),
    ...(own.length > 3 ? [button("all", true), button("none", false)] : []), ...boxes);
}

function switches() {
  const { facets } = chosen();
  const metrics = DATA.metrics.filter(([name]) => here().some((s) => s.bands[name]));
  const open = free();
  if (!metrics.length) metrics.push(DATA.metrics[0]);
  if (!metrics.some(([name]) => name === state.metric)) state.metric = metrics[0][0];
  const crowded = state.env !== ALL && shown().length > 6;
  state.panel = crowded && open.length > 1 ? open[1] : -1;
  const sets = DATA.sets.map(({ title }, i) => [i, title]);
  const change = (name, read = String) => (value) => set(name, read(value));
  const by = [[-1, "environment"], ...open.map((i) => [i, fieldName(facets[i].name)])];
  const envs = facets[0].values.map((v, i) => [i, v]);
  if (envs.length > 1) envs.push([ALL, "all of them"]);
  $("switches").replaceChildren(
    ...(sets.length > 1 ? [choice("results", sets, state.set, (i) => start(Number(i)))] : []),
    choice("environment", envs, state.env, (i) => start(state.set, Number(i))),
    choice("metric", metrics, state.metric, change("metric")),
    choice("one chart for each", by, state.panel, change("panel", Number)),
    el("fieldset", {}, el("legend", {}, "curves"),
      ...Object.entries(KINDS).map(([kind, { name }]) =>
        tick("radio", "kind", name, state.kind === kind, () => set("kind", kind))),
      tick("checkbox", "log", "logarithmic", state.log, (on) => set("log", on))),
    ...open.map(facet));
}

// Where most returns are known.
function richest({ facets, curves }) {
  const known = (v) => curves.filter((s) => s.at[0] === v && s.bands.episode_return).length;
  const counts = facets[0].values.map((_, v) => known(v));
  return counts.indexOf(Math.max(...counts));
}

function start(index, env = richest(DATA.sets[index])) {
  const focused = document.activeElement.id;
  Object.assign(state, { set: index, env, off: new Set() });
  switches();
  if (focused) $(focused)?.focus();
  draw();
}
