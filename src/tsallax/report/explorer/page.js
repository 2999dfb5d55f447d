"use strict";
// Controls, bars and drawings over the functions of maths.js.

const [FEWEST, MOST] = [2, 8]; // actions
const [MDP, ITERATIONS] = [chain(6), 200]; // the template draws as many states

// Inside of another page, as in the documentation, that page has the heading.
document.documentElement.classList.toggle("framed", window !== window.top);

const byId = (id) => document.getElementById(id);
const all = (selector, place = document) => [...place.querySelectorAll(selector)];
const make = (namespace) => (tag, attributes, ...children) => {
  const node = document.createElementNS(`http://www.w3.org/${namespace}`, tag);
  Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
  node.append(...children);
  return node;
};
const [html, svg] = ["1999/xhtml", "2000/svg"].map(make);

/** A number for people: three decimals, or an exponent where these say nothing. */
function show(x) {
  const size = Math.abs(x);
  const text = size && (size < 5e-4 || size >= 1e5) ? x.toExponential(1) : x.toFixed(3);
  return text.replace("Infinity", "∞").replaceAll("-", "−");
}

// A slider from low to high, a field for numbers from least to most, a line for wrong ones: as the
// data of their place say. Returns a setter.
function control(place, changed) {
  const { label, low, high, step = "any", least = low, most = high, log, infinite } = place.dataset;
  const [to, from] = log ? [Math.log10, (x) => +(10 ** x).toPrecision(3)] : [Number, Number];
  const [id, fine] = [`${place.id}-field`, step === "1" ? 1 : "any"];
  const range = { type: "range", min: to(low), max: to(high), step };
  const slider = html("input", { ...range, "aria-label": `${label}, slider` });
  const field = html("input", { type: "number", id, min: least, max: most, step: fine });
  Object.assign(field, infinite ? { placeholder: "∞" } : { required: true }); // empty is infinite
  const wrong = html("output", { for: id });
  const set = (x, origin) => {
    if (origin !== field) field.value = x === Infinity ? "" : x; // what is being typed stays
    if (origin !== slider) slider.value = to(Math.min(Math.max(x, low), high));
    slider.setAttribute("aria-valuetext", show(x));
    wrong.textContent = "";
    if (origin) changed(x);
  };
  slider.addEventListener("input", () => set(from(slider.value), slider));
  field.addEventListener("input", () => {
    const x = field.value === "" ? Infinity : field.valueAsNumber;
    if (field.validity.valid) set(x, field);
    else wrong.textContent = field.validationMessage;
  });
  place.replaceChildren(html("label", { for: id }, label), slider, field, wrong);
  return (x) => set(x, null);
}

// One state.
const state = {};
const setIndex = control(byId("q"), (q) => change({ q }));
const setAlpha = control(byId("alpha"), (alpha) => change({ alpha }));

/** The numbers that a button stands for. */
function meant({ dataset: { q, alpha, values } }) {
  return values ? { q: +q, alpha: +alpha, Q: values.split(" ").map(Number) } : { q: +q };
}

function change(numbers) {
  Object.assign(state, numbers);
  all("[data-policy]").forEach(drawPolicy);
  byId("lesson").textContent = "";
  for (const button of all("[data-q]")) {
    const wanted = Object.entries(meant(button));
    const pressed = wanted.every(([name, value]) => String(value) === String(state[name]));
    button.setAttribute("aria-pressed", pressed);
    if (pressed && button.dataset.lesson) byId("lesson").textContent = button.dataset.lesson;
  }
}

function load(numbers) {
  change(numbers);
  setIndex(state.q);
  setAlpha(state.alpha);
  byId("actions").replaceChildren(...state.Q.map(actionRow));
  byId("add").disabled = state.Q.length >= MOST;
}

function actionRow(value, a) {
  const name = `a${a + 1}`;
  const row = html("div", { id: name, class: "control" });
  Object.assign(row.dataset, byId("actions").dataset, { label: `Q(${name})` });
  control(row, (x) => change({ Q: state.Q.with(a, x) }))(value);
  const remove = html("button", { type: "button", "aria-label": `remove ${name}` }, "×");
  remove.disabled = state.Q.length <= FEWEST;
  remove.addEventListener("click", () => {
    load({ Q: state.Q.toSpliced(a, 1) });
    byId("add").focus(); // the button that was pressed is gone
  });
  row.insertBefore(remove, row.lastChild);
  return row;
}

function drawPolicy(card) {
  const name = card.dataset.policy;
  const found = described(name, state);
  const body = card.querySelector(".body");
  body.replaceChildren(html("p", { class: "note" }, note(name, found)));
  if (found === null) return;
  body.append(bars(found), byId("facts").content.cloneNode(true));
  const inside = found.support.flatMap((s, a) => (s ? [`a${a + 1}`] : []));
  const whole = inside.length === found.pi.length;
  const support = whole ? "all" : `${inside.length} of ${found.pi.length}: ${inside.join(" ")}`;
  const psi = found.psi === null ? "none" : show(found.psi);
  all("[data-fact]", body).forEach((place) => {
    place.textContent = { support, psi }[place.dataset.fact] ?? show(found[place.dataset.fact]);
  });
}

/** Where the equation on a card is not the whole story. */
function note(name, found) {
  if (name === "softmax" || name === "sparsemax") return "";
  if (found === null) return "There is none: for q ≤ 0 no policy maximises the value.";
  if (state.q === 1) return "At q = 1 it is the softmax.";
  if (state.q === Infinity) return "At q = ∞ it is greedy, ties shared evenly.";
  if (name === "exact") return state.q < 1 ? "For q < 1: ([ψ − Q/α]₊ (1−q)/(kq))^(1/(q−1))." : "";
  if (found.psi === null) return "S is empty. Normalised, the first best action takes all.";
  if (!Number.isFinite(found.total)) return "The weights are too large for float64.";
  return Math.abs(found.total - 1) < 1e-9 ? "" : `The sum is ${show(found.total)}: no policy.`;
}

/** From 0 to 1, or to the largest weight; a dashed line is then at 1. */
function bars({ pi, support }) {
  const most = Math.max(1, ...pi);
  const rows = pi.map((p, a) => {
    const [fill, one] = [html("div", { class: "fill" }), html("div", { class: "one" })];
    fill.style.width = `${(100 * p) / most}%`;
    one.style.left = `${100 / most}%`;
    const track = html("div", { class: "track" }, fill, ...(most > 1 + 1e-9 ? [one] : []));
    const number = support[a] ? (p === 0 ? "< 1e−300" : show(p)) : "ruled out";
    const parts = [html("span", {}, `a${a + 1}`), track, html("b", {}, number)];
    return html("li", { class: support[a] ? "in" : "out" }, ...parts);
  });
  return html("ol", { class: "bars" }, ...rows);
}

all("[data-q]").forEach((button) => button.addEventListener("click", () => load(meant(button))));
byId("add").addEventListener("click", () => load({ Q: [...state.Q, 0] }));
load(meant(byId("presets").firstElementChild));

// The chain.
const numbers = {};
let runs = {};

function solveChain() {
  const { beta, gamma, q, alpha } = numbers;
  const best = optimalValue(MDP, gamma);
  const solved = (beta) => talTrace(MDP, { beta, gamma, q, alpha }, ITERATIONS).map((Q) => {
    const pi = Q.map((row) => exact(row, alpha, q).pi);
    const V = policyValue(MDP, pi, gamma);
    return { Q, pi, V, best, gap: actionGap(Q), share: sum(V) / sum(best) };
  });
  runs = { own: solved(beta), plain: solved(0) };
  drawChain();
}

function drawChain() {
  const now = numbers.iteration - 1;
  const { Q, pi, V, best } = runs.own[now];
  const rows = Q.map((row, s) => [...row, gap(row), V[s], best[s]].map(show));
  all("#states tr").forEach((tr, s) =>
    tr.replaceChildren(tr.firstElementChild, ...rows[s].map((text) => html("td", {}, text))));
  all("#strip [data-state]").forEach((group) => drawArrow(group, pi));
  for (const [name, beta] of [["own", numbers.beta], ["plain", 0]]) {
    const { gap, share } = runs[name][now];
    byId(name).textContent = `β = ${beta}: gap ${show(gap)}, return ${show(share)} of the best`;
  }
  byId("iterated").textContent = now + 1;
  drawCurves(byId("curves"), now);
}

function drawArrow({ dataset: { state, action }, children: [arrow, number] }, pi) {
  const p = pi[state - 1][action];
  arrow.setAttribute("class", p > 0 ? "arrow" : "dotted");
  arrow.style.strokeWidth = 1 + 3 * p;
  number.textContent = `${"←→"[action]} ${p > 0 ? show(p) : 0}`;
}

/** The gaps over the iterations, at the size they are shown at; a disc marks one of them. */
function drawCurves(place, now) {
  const [width, left, right, bottom] = [place.clientWidth, 48, 14, 210];
  const most = Math.max(...[...runs.own, ...runs.plain].map((found) => found.gap));
  const unit = 10 ** Math.floor(Math.log10(most));
  const step = unit * [0.2, 0.5, 1, 2].find((n) => most <= 5 * n * unit);
  const x = (i) => left + ((width - left - right) * i) / ITERATIONS;
  const y = (v) => bottom - ((bottom - 10) * v) / most;
  const text = (x, y, anchor, v) => svg("text", { x, y, "text-anchor": anchor }, +v.toPrecision(3));
  const rows = [0, 1, 2, 3, 4, 5].map((n) => n * step).filter((v) => v <= most);
  const grid = rows.map((v) => `M${left} ${y(v)}H${width - right}`).join("");
  const points = (name) => runs[name].map((found, i) => [x(i + 1), y(found.gap)]).join(" ");
  place.replaceChildren(
    svg("path", { class: "grid", d: grid }),
    ...rows.map((v) => text(left - 6, y(v) + 4, "end", v)),
    ...[0, 50, 100, 150, 200].map((i) => text(x(i), bottom + 20, "middle", i)),
    ...["plain", "own"].map((name) => svg("polyline", { class: name, points: points(name) })),
    svg("circle", { class: "now", cx: x(now + 1), cy: y(runs.own[now].gap), r: 6 }),
  );
}

for (const name of ["beta", "gamma", "q", "alpha", "iteration"]) {
  const place = byId(`chain-${name}`);
  numbers[name] = Number(place.dataset.start);
  control(place, (x) => {
    numbers[name] = x;
    (name === "iteration" ? drawChain : solveChain)();
  })(numbers[name]);
}
addEventListener("resize", drawChain);
solveChain();
