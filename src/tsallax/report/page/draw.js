// Elements, tables and charts. Strings become text nodes or attributes, never markup.

const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
  "M-3.5 -3.5h7v7h-7z",
  "M0 -4.5L4.5 3.5H-4.5z",
  "M0 -5L5 0L0 5L-5 0z",
  "M-4 0H4M0 -4V4",
  "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5",
  "M0 4.5L4.5 -3.5H-4.5z",
];
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "14 4", "1 5"];
const ROW = 15; // pixels between two labels
const LETTER = 6.6; // pixels, about
const NARROW = 480; // pixels: names beside the curves would leave these no room
const NONE = "\u2013";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return filled(node, attributes, children);
}

// Three figures, but whole numbers whole.
function number(x) {
  if (x === null || x === undefined) return NONE;
  const size = Math.abs(x);
  if (size >= 1e9 || (size && size < 1e-3)) return x.toExponential(2);
  const digits = size >= 100 ? Math.floor(Math.log10(size)) + 1 : 3;
  return x.toLocaleString("en", { maximumSignificantDigits: digits });
}

function tickText(x) {
  const size = Math.abs(x);
  if (!x || (size >= 1e-3 && size < 1e3)) return String(+x.toPrecision(6));
  const notation = size >= 1e3 && size < 1e15 ? "compact" : "scientific";
  return Intl.NumberFormat("en", { notation }).format(x);
}

function table(head, rows, { name, caption = "", tall = false }) {
  const cell = (x) => (x.tagName === "TD" ? x : el("td", {}, x));
  const about = { class: tall ? "scroll tall" : "scroll", tabindex: 0, role: "region" };
  return el("div", { class: "table" },
    ...(caption ? [el("p", { class: "dim" }, caption)] : []), // it stays where the table scrolls
    el("div", { ...about, "aria-label": name },
      el("table", {},
        el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell)))))));
}

const wide = (...x) => el("td", { class: "w" }, ...x);
const tight = (...x) => el("td", { class: "n" }, ...x);

// An interval on a scale, as a cell's picture.
function whisker([mid, low, high], from, to, line = null) {
  const x = (v) => 5 + (140 * (v - from)) / (to - from || 1);
  const root = svg("svg", { width: 150, height: 16, class: "ink", "aria-hidden": true });
  const add = (tag, about) => root.append(svg(tag, about));
  if (line !== null) add("line", { class: "cursor", x1: x(line), x2: x(line), y1: 0, y2: 16 });
  if (low !== null) add("line", { class: "whisker", x1: x(low), x2: x(high), y1: 8, y2: 8 });
  add("circle", { cx: x(mid), cy: 8, r: 4, fill: "currentColor" });
  return root;
}

function mark(style, x, y) {
  const { color } = style;
  const place = { transform: `translate(${x.toFixed(1)},${y.toFixed(1)})` };
  return svg("path", { d: style.mark, class: "mark", stroke: color, fill: color, ...place });
}

// Ticks at 1, 2 or 5 times a power of ten.
function ticks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) {
    found.push(+(i * step).toPrecision(12));
  }
  return found;
}

// What all charts of a kind share: {low, high, last, log}.
function extent(series, log) {
  const ys = series.flatMap((s) => (log ? s.mid : [...s.mid, ...s.low, ...s.high]));
  const known = ys.filter((y) => y !== null && (!log || y > 0));
  const last = Math.max(1, ...series.map((s) => s.steps.at(-1)));
  if (!known.length) return { low: 0, high: 1, last, log: false };
  const low = known.reduce((a, b) => Math.min(a, b));
  const high = known.reduce((a, b) => Math.max(a, b));
  if (log) return { low: low / 1.2, high: high * 1.2, last, log };
  const pad = 0.04 * (high - low || Math.abs(high) || 1);
  return { low: low - pad, high: high + pad, last, log };
}

// Places on a chart, for values and for steps.
function frame({ low, high, last, log }, width, height, side) {
  const box = { left: 52, right: width - side, top: 8, bottom: height - 38 };
  const scale = log ? (y) => Math.log10(Math.max(y, low)) : (y) => y;
  const [a, b] = [scale(low), scale(high)];
  const decades = log && b - a > 2;
  const levels = decades ? ticks(Math.ceil(a), b, 5).filter(Number.isInteger) : ticks(low, high, 5);
  return {
    ...box,
    x: (step) => box.left + (step / last) * (box.right - box.left),
    y: (value) => box.bottom - ((scale(value) - a) / (b - a)) * (box.bottom - box.top),
    rows: decades ? levels.map((t) => 10 ** t) : levels,
    columns: ticks(0, last, Math.max(2, Math.min(6, Math.floor((box.right - box.left) / 70)))),
  };
}

function axes(on, height) {
  const text = (about, words) => svg("text", { class: "tick", ...about }, words);
  return [
    ...on.rows.flatMap((t) => [
      svg("line", { class: "grid", x1: on.left, x2: on.right, y1: on.y(t), y2: on.y(t) }),
      text({ x: on.left - 6, y: on.y(t) + 4, "text-anchor": "end" }, tickText(t)),
    ]),
    ...on.columns.map((t) =>
      text({ x: on.x(t), y: on.bottom + 17, "text-anchor": "middle" }, tickText(t))),
    svg("line", { class: "axis", x1: on.left, x2: on.right, y1: on.bottom, y2: on.bottom }),
    text({ x: (on.left + on.right) / 2, y: height - 4, "text-anchor": "middle" },
      "environment steps"),
  ];
}

// Indices where a list has values, in unbroken parts.
function parts(list) {
  const found = [];
  list.forEach((value, i) => {
    if (value === null) return;
    if (i === 0 || list[i - 1] === null) found.push([]);
    found.at(-1).push(i);
  });
  return found;
}

function curve(s, on, order) {
  const at = (i, v) => `${on.x(s.steps[i]).toFixed(1)} ${on.y(v).toFixed(1)}`;
  const band = parts(s.low).map((part) => {
    const up = part.map((i) => at(i, s.low[i]));
    const back = part.map((i) => at(i, s.high[i])).reverse();
    return `M${[...up, ...back].join("L")}Z`;
  });
  const lines = parts(s.mid);
  const path = lines.map((part) => `M${part.map((i) => at(i, s.mid[i])).join("L")}`);
  const known = lines.flat();
  const every = Math.ceil(known.length / 6);
  const alone = lines.filter((part) => part.length === 1).flat(); // a path does not show them
  const some = known.filter((i, j) => j % every === (order * 2) % every || alone.includes(i));
  const { color, dash } = s.style;
  return [
    svg("path", { class: "band", fill: color, d: band.join("") }),
    svg("path", { class: "curve", stroke: color, "stroke-dasharray": dash, d: path.join("") }),
    ...some.map((i) => mark(s.style, on.x(s.steps[i]), on.y(s.mid[i]))),
  ];
}

// A name at the end of each curve, moved apart where they would meet.
function labels(series, on, side) {
  const tags = series.map((s) => {
    const end = s.mid.findLastIndex((y) => y !== null);
    return { s, x: on.x(s.steps[end]), from: on.y(s.mid[end]), to: 0 };
  });
  tags.sort((a, b) => a.from - b.from);
  tags.forEach((t, i) => { t.to = Math.max(t.from, i ? tags[i - 1].to + ROW : on.top + 4); });
  tags.reverse();
  tags.forEach((t, i) => { t.to = Math.min(t.to, i ? tags[i - 1].to - ROW : on.bottom); });
  const room = Math.floor((side - 22) / LETTER);
  return tags.flatMap(({ s, x, from, to }) => [
    svg("path", { class: "leader", d: `M${x} ${from}L${on.right + 5} ${to}` }),
    mark(s.style, on.right + 11, to),
    svg("text", { class: "label", x: on.right + 19, y: to + 4 },
      s.name.length > room ? `${s.name.slice(0, room - 1)}\u2026` : s.name),
  ]);
}

// The values at one step: the slider's, which the pointer moves, too.
function values(series, on, root, title, columns) {
  const steps = series.map((s) => s.steps).reduce((a, b) => (b.at(-1) > a.at(-1) ? b : a));
  const line = svg("line", { class: "cursor", y1: on.top, y2: on.bottom });
  const head = el("th", { scope: "col" });
  const slider = el("input", {
    type: "range", min: 0, max: steps.length - 1, "aria-label": `step of the values, ${title}`,
  });
  slider.style.marginLeft = `${on.left - 8}px`;
  slider.style.width = `${on.right - on.left + 16}px`;
  const rows = series.map((s) => {
    const { color, dash } = s.style;
    const swatch = svg("svg", { width: 34, height: 14, class: "ink", "aria-hidden": true },
      svg("path", { class: "curve", stroke: color, "stroke-dasharray": dash, d: "M0 7H34" }),
      mark(s.style, 17, 7));
    const cells = [tight(), tight(), tight()];
    return { s, cells, row: el("tr", {}, el("td", {}, swatch), el("td", {}, s.name), ...cells) };
  });
  const show = (i) => {
    slider.value = i;
    for (const end of ["x1", "x2"]) line.setAttribute(end, on.x(steps[i]));
    head.textContent = `step ${number(steps[i])}`;
    slider.setAttribute("aria-valuetext", head.textContent);
    for (const { s, cells } of rows) {
      const j = s.steps.findIndex((step) => step >= steps[i]);
      const known = j >= 0 && s.mid[j] !== null;
      const words = known ? [number(s.mid[j]), s.told(j), s.n[j]] : [NONE, "", ""];
      words.forEach((text, k) => { cells[k].textContent = text; });
    }
  };
  const follow = (event) => {
    const at = event.clientX - root.getBoundingClientRect().left;
    const far = steps.map((step) => Math.abs(on.x(step) - at));
    show(far.indexOf(Math.min(...far)));
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  for (const kind of ["pointermove", "pointerdown"]) root.addEventListener(kind, follow);
  root.append(line);
  show(steps.length - 1);
  const names = columns.map((name) => el("th", { scope: "col" }, name));
  return [slider, el("div", { class: "scroll" }, el("table", { class: "values" },
    el("thead", {}, el("tr", {}, el("td"), head, ...names)),
    el("tbody", {}, ...rows.map((r) => r.row))))];
}

// Series are {name, style, steps, mid, low, high, n, told(i)}, null where nothing is known.
function chart(title, series, size, width, columns) {
  const longest = Math.max(...series.map((s) => s.name.length));
  const named = width > NARROW; // else the table below is the legend
  const side = named ? Math.min(width * 0.36, 24 + LETTER * longest) : 12;
  const height = Math.max(270, ROW * series.length + 46);
  const on = frame(size, width, height, side);
  const ends = series.map((s) => {
    const known = parts(s.mid).flat();
    return `${s.name}: ${[known[0], known.at(-1)].map((i) => number(s.mid[i])).join(" to ")}`;
  });
  const about = { role: "img", "aria-label": `${title}. ${ends.join("; ")}` };
  const root = svg("svg", { width, height, class: "ink", ...about },
    ...axes(on, height),
    ...series.flatMap((s, i) => curve(s, on, i)),
    ...(named ? labels(series, on, side) : []));
  return el("figure", {},
    el("figcaption", {}, title), root, ...values(series, on, root, title, columns));
}
