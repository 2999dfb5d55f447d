"use strict";
// The policies of one state, and Tsallis advantage learning on a small MDP, in float64.
// Q is action values, q the entropic index, z = Q/alpha. A policy is { pi, psi, support }:
// its normaliser psi (null if it has none) belongs to the equation on its card.

const sum = (x) => x.reduce((a, b) => a + b, 0);
const dot = (x, y) => sum(x.map((v, i) => v * y[i]));
const descending = (x) => [...x].sort((a, b) => b - a);

/** k, the entropy's own factor: the paper's 1/2, but Shannon's 1 at q = 1. */
const factor = (q) => (q === 1 ? 1 : 1 / 2);

/** `H_q(pi) = -k <pi, ln_q pi>` over the support, also where pi does not sum to one. */
function entropy(pi, q) {
  if (q === Infinity) return 0;
  const qLog = q === 1 ? Math.log : (x) => Math.expm1((q - 1) * Math.log(x)) / (q - 1);
  return -factor(q) * sum(pi.filter((p) => p > 0).map((p) => p * qLog(p)));
}

/** The best actions, ties shared evenly. */
function greedy(Q) {
  const top = Math.max(...Q);
  const support = Q.map((v) => v === top);
  return { pi: support.map((s) => s / sum(support)), psi: null, support };
}

/** `exp(z - psi)`. */
function softmax(Q, alpha) {
  const top = Math.max(...Q);
  const weights = Q.map((v) => Math.exp((v - top) / alpha));
  const total = sum(weights);
  const pi = weights.map((w) => w / total);
  return { pi, psi: top / alpha + Math.log(total), support: Q.map(() => true) };
}

/** `[z - psi]+`. */
function sparsemax(Q, alpha) {
  const top = Math.max(...Q);
  const z = Q.map((v) => (v - top) / alpha);
  const ranked = descending(z);
  const K = sum(ranked.map((v, i) => 1 + (i + 1) * v > sum(ranked.slice(0, i + 1))));
  const psi = (sum(ranked.slice(0, K)) - 1) / K;
  const pi = z.map((v) => Math.max(v - psi, 0));
  return { pi, psi: psi + top / alpha, support: z.map((v) => v > psi) };
}

/** Where q has a closed form, the exact policy and its approximation are both this. */
const CLOSED = new Map([[1, softmax], [2, sparsemax], [Infinity, greedy]]);

/**
 * `([z - psi]+ (q-1)/(kq))^(1/(q-1))`, which maximises `<pi,Q> + alpha H_q(pi)`; none for q <= 0.
 *
 * The unknown is m, the probability of a reference action: the best one, or for q > 2 the worst of
 * the support. Every other slope `d pi/dm = (pi/m)^(2-q)` is then at most 1. In psi the slopes
 * have no bound for q > 2.
 */
function exact(Q, alpha, q) {
  if (!(q > 0)) return null;
  if (CLOSED.has(q)) return CLOSED.get(q)(Q, alpha);
  const e = q - 1;
  const scale = e / (alpha * factor(q) * q);
  const ranked = descending(Q);
  // An action is in if the better ones leave it something when it gets nothing.
  const fits = (edge) => sum(Q.map((v) => (v > edge ? (scale * (v - edge)) ** (1 / e) : 0))) < 1;
  const edge = q < 1 ? ranked.at(-1) : ranked.findLast(fits);
  const support = Q.map((v) => v >= edge);
  const ref = q > 2 ? edge : ranked[0];
  const gaps = Q.map((v) => scale * (v - ref));
  const weights = (m) => gaps.map((gap, a) => (support[a] ? raised(m, gap, e) : 0));
  const m = root((m) => {
    const pi = weights(m);
    return [sum(pi) - 1, sum(pi.map((p, a) => (support[a] ? (p / m) ** (1 - e) : 0)))];
  });
  const pi = weights(m);
  const total = sum(pi);
  return { pi: pi.map((p) => p / total), psi: ref / alpha - m ** e / (alpha * scale), support };
}

/** `[m^e + gap]+^(1/e)`, precise for small e; m^e may underflow. */
function raised(m, gap, e) {
  const ratio = gap === 0 ? 0 : gap * m ** -e;
  if (ratio === Infinity) return gap ** (1 / e);
  return ratio > -1 ? m * Math.exp(Math.log1p(ratio) / e) : 0;
}

/** The zero in (0, 1] of an increasing function: Newton's iteration, halving where it leaves. */
function root(valueAndSlope) {
  let [low, high, m] = [0, 1, 1];
  for (let i = 0; i < 200; i++) {
    const [value, slope] = valueAndSlope(m);
    [low, high] = value > 0 ? [low, m] : [m, high];
    const newton = m - value / slope;
    const next = newton > low && newton < high ? newton : (low + high) / 2;
    if (Math.abs(next - m) <= 1e-16) break;
    m = next;
  }
  return m;
}

/** The paper's `[z - psi~]+^(1/(q-1))` (eq. 7, the appendix's constant): need not sum to one. */
function paper(Q, alpha, q) {
  if (CLOSED.has(q)) return CLOSED.get(q)(Q, alpha);
  const kq = factor(q) * q;
  const constant = kq - kq / (q - 1);
  const top = Math.max(...Q);
  const z = Q.map((v) => (v - top) / alpha);
  const order = z.map((_, a) => a).sort((a, b) => z[b] - z[a] || a - b);
  const head = (i) => sum(order.slice(0, i).map((a) => z[a]));
  const allowed = (i) => kq + i * z[order[i - 1]] > head(i) + i * constant;
  const K = 1 + order.findLastIndex((_, i) => allowed(i + 1));
  if (K === 0) return { pi: z.map(() => 0), psi: null, support: z.map(() => false) };
  const psi = (head(K) - kq) / K + constant;
  const support = z.map((v, a) => order.indexOf(a) < K && v > psi);
  const pi = z.map((v, a) => (support[a] ? (v - psi) ** (1 / (q - 1)) : 0));
  return { pi, psi: psi + top / alpha, support };
}

/** `paper` divided by its sum; where nothing is left, the first best action. */
function paperNormalised(Q, alpha, q) {
  const { pi, psi, support } = paper(Q, alpha, q);
  const most = Math.max(...pi);
  const best = Q.indexOf(Math.max(...Q));
  const scaled = pi.map((p, a) => (most > 0 ? p / most : a === best ? 1 : 0));
  const total = sum(scaled);
  const inside = most > 0 ? support : scaled.map((p) => p > 0);
  return { pi: scaled.map((p) => p / total), psi, support: inside };
}

const POLICIES = { exact, softmax, sparsemax, paper, "paper-normalised": paperNormalised };

/** A policy with its sum and the parts of `<pi,Q> + alpha H_q(pi)`; null where there is none. */
function described(name, { Q, alpha, q }) {
  const policy = POLICIES[name](Q, alpha, q);
  if (policy === null) return null;
  const [mean, bonus] = [dot(policy.pi, Q), alpha * entropy(policy.pi, q)];
  return { ...policy, total: sum(policy.pi), mean, bonus, value: mean + bonus };
}

/** Left or right on a line, with probability `slip` the other way; the ends pay 0.1 and 1. */
function chain(length, slip = 0.1) {
  const states = [...Array(length).keys()];
  const towards = (s, step) => Math.min(Math.max(s + step, 0), length - 1);
  const P = states.map((s) => [-1, 1].map((step) => states.map((next) =>
    (next === towards(s, step) ? 1 - slip : 0) + (next === towards(s, -step) ? slip : 0))));
  return { P, r: states.map((s) => [s === 0 ? 0.1 : 0, s === length - 1 ? 1 : 0]) };
}

/** `r + gamma P V`. */
const backup = ({ P, r }, V, gamma) =>
  r.map((row, s) => row.map((reward, a) => reward + gamma * dot(P[s][a], V)));

/** Q after 1, 2, ... iterations of `r + gamma P <pi,Q> + beta (Q - <pi,Q>)` (eq. 11) from 0. */
function talTrace(mdp, { q, alpha, beta, gamma }, iterations) {
  const step = (Q) => {
    const V = Q.map((row) => dot(exact(row, alpha, q).pi, row));
    return backup(mdp, V, gamma).map((row, s) => row.map((y, a) => y + beta * (Q[s][a] - V[s])));
  };
  const trace = [step(mdp.r.map((row) => row.map(() => 0)))];
  while (trace.length < iterations) trace.push(step(trace.at(-1)));
  return trace;
}

const gap = (row) => descending(row)[0] - descending(row)[1];
const actionGap = (Q) => sum(Q.map(gap)) / Q.length;

/** `V_pi = (I - gamma P_pi)^{-1} r_pi`; the diagonal dominates, so elimination needs no pivots. */
function policyValue({ P, r }, pi, gamma) {
  const rows = pi.map((own, s) => {
    const next = P.map((_, t) => dot(own, P[s].map((p) => p[t])));
    return [...next.map((p, t) => (s === t ? 1 : 0) - gamma * p), dot(own, r[s])];
  });
  rows.forEach((pivot, s) => rows.forEach((row, t) => {
    const share = row[s] / pivot[s];
    if (t !== s) row.forEach((_, i) => (row[i] -= share * pivot[i]));
  }));
  return rows.map((row, s) => row.at(-1) / row[s]);
}

/** V*, by policy iteration from 0: no reward here is negative. */
function optimalValue(mdp, gamma) {
  const best = (V) => backup(mdp, V, gamma).map((row) => greedy(row).pi);
  for (let V = mdp.r.map(() => 0); ; ) {
    const next = policyValue(mdp, best(V), gamma);
    if (next.every((v, s) => v <= V[s] + 1e-12)) return next;
    V = next;
  }
}
