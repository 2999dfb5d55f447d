// The sections of the page that stay as they are; then the page starts.

const VERDICTS = { holds: ["good", "\u2713"], "does not hold": ["bad", "\u2717"] };

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
  const count = ([value, n]) => `${fieldValue(value) || NONE} (${n} ${n === 1 ? "run" : "runs"})`;
  const differ = DATA.differ.map(([name, values]) =>
    [fieldName(name), values.map(count).join("; ")]);
  const common = DATA.common.map(([name, value]) => [fieldName(name), fieldValue(value) || NONE]);
  const caption = `${NONE} is an option that the run does not have, or the environment's own value.`;
  const head = ["run", "status", "seeds \u00d7 settings", "notes",
    ...DATA.differ.map(([name]) => fieldName(name))];
  const runs = DATA.runs.map((r) =>
    [wide(r.name), tight(r.status), tight(r.seeds), wide(r.notes.join("; ")),
      ...r.values.map((value) => fieldValue(value) || NONE)]);
  const fold = (text, node) => el("details", {}, el("summary", {}, text), node);
  show("configs",
    differ.length
      ? table(["option", "values"], differ, { name: "what differs", caption, tall: differ.length > 8 })
      : el("p", {}, "All runs have the same options."),
    fold(`The same in all runs: ${common.length} options and versions`,
      table(["option", "value"], common, { name: "the same in all runs", tall: true })),
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
  show("problems", table(["where", "what"], rows, { name: "incomplete or unreadable", tall: rows.length > 8 }));
  $("about").append("; ", el("a", { href: "#problems" }, `incomplete or unreadable: ${rows.length}`));
}
show("curves");
show("scores");
DATA.claims.forEach(claims);
if (DATA.clips.length) show("clips", ...DATA.clips.map(clip));
if (DATA.clips.length === 1 && DATA.clips[0].kind.startsWith("video/")) {
  $("clips").lastElementChild.open = true; // a film waits to be started, a GIF does not
}
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
