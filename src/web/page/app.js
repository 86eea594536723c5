// SPDX-License-Identifier: Apache-2.0
// Shows a repository: a function for each view, which returns its title and its elements.
"use strict";

const main = document.getElementById("main");
const where = document.getElementById("where");

// ---- Data and routes. ----

async function get(path, values) {
  const answer = await fetch("api/" + path + query(values || {}), { credentials: "same-origin" });
  if (answer.status === 401) throw new Error("This page has no token. Open the address that `varve web` printed.");
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error || "The answer is missing.");
  return value;
}

const treeHash = (series, version, path) => "/tree/" + series + "/" + version + "/" + path;
const historyHash = (series, path) => "/history/" + series + "/" + path;
const diffHash = (series, before, after, path) => "/diff/" + [series, before, after, path].join("/");
const changesHash = (series, before, after) => "/changes/" + [series, before, after].join("/");
const decoded = (raw) => {
  const bytes = raw.replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
};

const tabs = (id, current) => el("nav", { class: "actions", "aria-label": "Views of the series" },
  button("#/series/" + id, "Timeline", current === "timeline"),
  button("#/space/" + id, "Space", current === "space"));

async function overview() {
  const data = await get("overview");
  const words = { OK: ["ok", "No concerns"], WARNING: ["warning", "Look at this"], CRITICAL: ["critical", "Act now"] };
  const [kind, text] = words[data.health];
  const banner = el("section", { class: "banner " + kind, "aria-label": "Health" }, el("p", {}, el("strong", {}, text)));
  for (const concern of data.concerns) banner.append(el("p", {}, plain(concern.text)));
  for (const check of data.checks) {
    banner.append(el("p", { class: "quiet" }, "Check of the " + check.depth + " on " + date(check.ended) + ": " +
      (check.damages ? plural(check.damages, "damaged place") : "no damage")));
  }
  if (!data.checks.length) banner.append(el("p", { class: "quiet" }, "No check was recorded yet: run `varve check`."));
  const rows = data.series.map((series) => [
    link("/series/" + series.id, name(series.name)),
    count(series.versions),
    series.newest ? link(treeHash(series.id, series.newest.number, ""), name(series.newest.name)) : "none yet",
    series.newest ? age(data.now - series.newest.time) : "",
    series.newest ? size(series.newest.logical) : "",
    series.open.map((open) => name(open.name)),
  ]);
  const other = [["Catalog", data.catalog], ["Index", data.index], ["Manifests", data.manifests],
    ["Parity", data.parity], ["Open versions", data.staging], ["Reserve", data.reserve]].filter(([, bytes]) => bytes > 0);
  return ["Repository", [el("h1", {}, "Backups in ", name(data.repository)), banner, searchForm(),
    rows.length ? table("Series: the versions of one source", [["Series", "head"], ["Versions", "number"], ["Newest"],
      ["Age", "nowrap"], ["Size", "number"], ["Open"]], rows)
      : el("p", {}, "There is no series yet. `varve store` makes the first one."),
    el("h2", {}, "Space"),
    facts(["All versions, if stored in full", size(data.logical)], ["Distinct data", size(data.unique)],
      ["Stored data", size(data.containers)], ["Repository in all", size(data.total)], ["Free on the disk", size(data.free)],
      ...other.map(([title, bytes]) => [title, size(bytes)]))]];
}

async function timeline(id) {
  const data = await get("versions", { series: id });
  const list = el("div");
  const largest = () => Math.max(1, ...data.versions.map((version) => version.logical));
  const row = (version) => [
    [link(treeHash(id, version.number, ""), name(version.name)), version.problems ? " (incomplete)" : ""],
    when(version.time),
    [size(version.logical), bar(size(version.new) + " of " + size(version.logical) + " new",
      [100 * Math.min(version.new, version.logical) / largest(), "new"],
      [100 * Math.max(0, version.logical - version.new) / largest(), "old"])],
    version.before === undefined ? "first" : link(changesHash(id, version.before, version.number),
      version.logical_change ? signed(version.logical_change, size) : "±0 B"),
    size(version.new),
    version.before === undefined ? count(version.entries) : count(version.entries) + " (" +
      signed(version.entries_change, count) + ")",
  ];
  const draw = () => {
    const parts = [table(plural(data.count, "version") + ", newest first", [["Version", "head"], ["Time", "nowrap"],
      ["Size", "number"], ["Growth", "number"], ["New data", "number"], ["Entries", "number"]], data.versions.map(row))];
    if (data.more) {
      const more = el("button", { type: "button" }, "Show older versions");
      more.addEventListener("click", async () => {
        const next = await get("versions", { series: id, below: data.versions.at(-1).number });
        data.versions.push(...next.versions);
        data.more = next.more;
        draw();
      });
      parts.push(el("p", {}, more));
    }
    list.replaceChildren(...parts);
  };
  draw();
  return [data.name, [el("h1", {}, name(data.name)), tabs(id, "timeline"), searchForm(id),
    el("p", { class: "quiet" }, "Bars:", el("span", { class: "key new" }), "data that was new in the version",
      el("span", { class: "key" }), "data that an earlier version had"), list]];
}

async function space(id) {
  const data = await get("space", { series: id });
  const largest = Math.max(1, ...data.versions.map((version) => version.referenced));
  const names = new Map(data.versions.map((version) => [version.number, version.name]));
  const label = (number) => names.has(number) ? name(names.get(number)) : "version " + number + ", deleted";
  const versions = data.versions.map((version) => [
    link(treeHash(id, version.number, ""), name(version.name)),
    [size(version.referenced), bar("data that it uses", [100 * version.referenced / largest, "old"])],
    size(version.unique), size(version.shared), version.locked ? "until " + date(version.locked) : ""]);
  const categories = data.categories.map((category) => [
    label(category.birth), category.death ? label(category.death) : "still in use",
    size(category.bytes), size(category.raw), count(category.chunks)]);
  return [data.name + ", space", [el("h1", {}, name(data.name)), tabs(id, "space"),
    table("What each version uses, and what its deletion frees", [["Version", "head"], ["Uses", "number"],
      ["Frees", "number"], ["Shares", "number"], ["Locked"]], versions),
    data.more ? el("p", { class: "quiet" }, "Only the newest versions are listed; `varve du` lists all.") : null,
    el("details", {}, el("summary", {}, "Categories"),
      el("p", { class: "quiet" }, "Chunks live from the version that first stored them to the last one that uses them. " +
        "A category is all chunks with the same life."),
      table(plural(categories.length, "category", "categories"), [["First stored by", "head"], ["Last used by"],
        ["Stored", "number"], ["Data", "number"], ["Chunks", "number"]], categories))]];
}

function crumbs(id, seriesName, version, path) {
  const nav = el("nav", { class: "path", "aria-label": "Path" }, link("/series/" + id, name(seriesName)), " / ");
  let raw = "";
  nav.append(link(treeHash(id, version.number, ""), name(version.name)));
  for (const part of path.split("/").filter(Boolean)) {
    raw += (raw && "/") + part;
    nav.append(" / ", link(treeHash(id, version.number, raw), name(decoded(part))));
  }
  return nav;
}

// Returns links to the same place in the versions before and after this one.
function neighbours(id, path, data) {
  const nav = el("nav", { class: "neighbours", "aria-label": "Versions" });
  for (const [key, before, behind] of [["previous", "← ", ""], ["next", "", " →"]]) {
    const version = data[key];
    if (!version) continue;
    nav.append(el("span", {}, before, link(treeHash(id, version.number, version.has ? path : ""), name(version.name)),
      version.has ? "" : " (without it)", behind));
  }
  return nav;
}

async function tree(id, number, path) {
  const values = { series: id, version: number, path };
  const data = await get("tree", values);
  const series = await get("versions", { series: id, below: 0 });
  const downloads = el("div", { class: "actions" });
  const place = query(values);
  const isDirectory = data.self.type === "directory";
  if (isDirectory) downloads.append(button("tar" + place, "Download as tar"), button("zip" + place, "Download as zip"));
  if (data.self.type === "file") downloads.append(button("file" + place, "Download (" + size(data.self.size) + ")"));
  if (path) downloads.append(button("#" + historyHash(id, path), "History"));
  const head = [crumbs(id, series.name, data.version, path),
    el("h1", {}, name(path ? data.self.name : series.name + "/" + data.version.name)),
    el("p", { class: "quiet" }, "As of " + date(data.version.time)), neighbours(id, path, data), downloads];
  if (!isDirectory) {
    return [data.self.name, [...head, facts(["Type", data.self.type], ["Size", size(data.self.size)],
      ["Modified", date(data.self.mtime)], ["Mode", data.self.mode], ["Owner", data.self.uid + ":" + data.self.gid])]];
  }
  const list = el("div");
  const entries = data.entries.slice();
  const draw = (more) => {
    const rows = entries.map((entry) => {
      const raw = (path && path + "/") + entry.raw;
      return [[link(treeHash(id, number, raw), name(entry.name), entry.type === "directory" ? "/" : ""),
        entry.target !== undefined ? " → " : "", entry.target !== undefined ? name(entry.target) : ""],
        entry.type === "file" ? size(entry.size) : entry.type, when(entry.mtime), entry.mode,
        el("span", { class: "links" },
          entry.type === "file" ? el("a", { href: "file" + query({ ...values, path: raw }) }, "Download") : null,
          link(historyHash(id, raw), "History"))];
    });
    const parts = [entries.length ? table(plural(entries.length, "entry", "entries") + (more ? " so far" : ""),
      [["Name", "head"], ["Size", "number"], ["Modified", "nowrap"], ["Mode", "nowrap"], ["", "nowrap"]], rows)
      : el("p", {}, "The folder is empty.")];
    if (more) {
      const next = el("button", { type: "button" }, "Show more");
      next.addEventListener("click", async () => {
        const answer = await get("tree", { ...values, after: more });
        entries.push(...answer.entries);
        draw(answer.more);
      });
      parts.push(el("p", {}, next));
    }
    list.replaceChildren(...parts);
  };
  draw(data.more);
  return [path ? data.self.name : data.version.name, [...head, list]];
}

async function history(id, path) {
  const data = await get("history", { series: id, path });
  const words = { new: "appeared", changed: "changed", metadata: "other owner, mode or time", same: "unchanged" };
  const rows = data.versions.map((version, i) => {
    const before = data.versions[i + 1];
    const links = [el("a", { href: "file" + query({ series: id, version: version.number, path }) }, "Download")];
    if (version.entry.type !== "file") links.length = 0;
    if (version.change === "changed" && before) links.push(link(diffHash(id, before.number, version.number, path), "Compare"));
    return [link(treeHash(id, version.number, path), name(version.name)), when(version.time),
      size(version.entry.size), when(version.entry.mtime), words[version.change], el("span", { class: "links" }, ...links)];
  });
  return ["History of " + data.path, [
    el("nav", { class: "path", "aria-label": "Path" }, link("/series/" + id, name(data.name))),
    el("h1", {}, "History of ", name(data.path)),
    rows.length ? table(plural(rows.length, "version has", "versions have") + " it, newest first",
      [["Version", "head"], ["Time", "nowrap"], ["Size", "number"], ["Modified", "nowrap"], ["Against the one before"], ["", "nowrap"]], rows)
      : el("p", {}, "No version has it."),
    data.more ? el("p", { class: "quiet" }, "Only the newest versions were searched; `varve history` searches all.") : null]];
}

async function diff(id, before, after, path) {
  const data = await get("diff", { series: id, before, after, path });
  const title = decoded(path.split("/").at(-1));
  const head = [el("nav", { class: "path", "aria-label": "Path" }, link(historyHash(id, path), "History of ", name(title))),
    el("h1", {}, name(title))];
  if (data.reason) {
    return [title, [...head, el("p", {}, name(data.before), " and ", name(data.after),
      " cannot be compared as text: " + data.reason + ".")]];
  }
  if (!data.lines.length) return [title, [...head, el("p", {}, "The text is the same.")]];
  const body = el("tbody");
  for (const line of data.lines) {
    if (line.kind === "@") {
      body.append(el("tr", { class: "gap" }, el("td", { colspan: "4" }, "equal lines are left out")));
      continue;
    }
    const kind = { "+": "added", "-": "removed" }[line.kind];
    body.append(el("tr", { class: kind }, el("td", { class: "line" }, line.before || ""),
      el("td", { class: "line" }, line.after || ""), el("td", { class: "sign" }, line.kind === "-" ? "−" : line.kind),
      el("td", {}, plain(line.text))));
  }
  return [title, [...head,
    data.coarse ? el("p", { class: "quiet" }, "The versions differ too much to be compared line by line.") : null,
    el("table", { class: "diff" }, el("caption", {}, name(data.before), " → ", name(data.after),
      ": removed lines have a −, added lines a +"), body),
    data.more ? el("p", { class: "quiet" }, "Further lines are left out. Download both versions to see all.") : null]];
}

// Returns a list to choose another version from.
function choice(label, versions, chosen, open) {
  const select = el("select", { "aria-label": label });
  for (const version of versions) {
    select.append(el("option", { value: version.number, selected: version.number === chosen }, plain(version.name)));
  }
  select.addEventListener("change", () => { location.hash = open(select.value); });
  return select;
}

async function changes(id, before, after) {
  const words = { added: "added", removed: "removed", changed: "changed", metadata: "other owner, mode or time" };
  const signs = { added: "+", removed: "−", changed: "≠", metadata: "·" };
  const values = { series: id, before, after };
  let data;
  const list = await pages(async (end) => {
    data = await get("changes", end === undefined ? values : { ...values, behind: end });
    return { rows: data.changes, names: data.names, end: data.behind, cut: data.cut };
  }, (rows, more) => table(plural(rows.length, "difference") + (more ? " so far" : ""),
    [["Name", "head"], ["Difference"], ["Size", "number"], ["Modified", "nowrap"], ["", "nowrap"]], rows.map((one) => {
      const at = one.change === "removed" ? before : after;
      const text = one.path ? name(one.path) : "the folder of the version";
      return [[link(treeHash(id, at, one.raw), text, one.path && one.type === "directory" ? "/" : "")],
        el("span", { class: "change " + one.change }, el("span", { class: "sign", "aria-hidden": "true" }, signs[one.change]), words[one.change]),
        one.type === "file" ? size(one.size) : one.type, when(one.mtime),
        el("span", { class: "links" },
          one.change === "changed" && one.type === "file" ? link(diffHash(id, before, after, one.raw), "Compare") : null,
          one.path ? link(historyHash(id, one.raw), "History") : null)];
    })));
  const recent = (await get("versions", { series: id })).versions;
  for (const one of [data.after, data.before]) {
    if (!recent.some((version) => version.number === one.number)) recent.push(one);
  }
  return [data.name + ", changes", [
    el("nav", { class: "path", "aria-label": "Path" }, link("/series/" + id, name(data.name))),
    el("h1", {}, "From ", name(data.before.name), " to ", name(data.after.name)),
    el("div", { class: "actions" },
      choice("The version before", recent, data.before.number, (number) => changesHash(id, number, after)), "→",
      choice("The version after", recent, data.after.number, (number) => changesHash(id, before, number))),
    list]];
}

async function search(id, text) {
  const values = id ? { series: id, name: text } : { name: text };
  const list = await pages(async (end) => {
    const data = await get("search", { ...values, ...end });
    return { rows: data.found, names: data.names, end: data.end && !data.end.cut ? data.end : undefined,
      cut: data.end && data.end.cut };
  }, (rows, more) => table(plural(rows.length, "name") + (more ? " so far" : ""),
    [["Name", "head"], ["Newest version that has it"], ["Size", "number"], ["Modified", "nowrap"], ["", "nowrap"]], rows.map((one) => [
      [link(treeHash(one.series, one.version.number, one.raw), name(one.path), one.type === "directory" ? "/" : "")],
      el("span", {}, name(one.series_name), " / ", name(one.version.name)),
      one.type === "file" ? size(one.size) : one.type, when(one.mtime),
      el("span", { class: "links" }, one.type === "file" ? el("a", { href: "file" +
        query({ series: one.series, version: one.version.number, path: one.raw }) }, "Download") : null,
        link(historyHash(one.series, one.raw), "History"))])));
  const shown = decoded(text);
  return ["Find " + shown, [
    id ? el("nav", { class: "path", "aria-label": "Path" }, link("/series/" + id, "The series")) : null,
    el("h1", {}, "Find ", name(shown)), searchForm(id, shown), list,
    el("p", { class: "quiet" }, "Text finds names that contain it. With * ? or [a-z] it has to match the whole name, and with a slash the path. ",
      "A name is listed once for all versions in a row that have it.")]];
}

const routes = [[/^\/?$/, overview], [/^\/series\/(\d+)$/, timeline], [/^\/space\/(\d+)$/, space],
  [/^\/tree\/(\d+)\/(\d+)\/(.*)$/, tree], [/^\/history\/(\d+)\/(.+)$/, history],
  [/^\/diff\/(\d+)\/(\d+)\/(\d+)\/(.+)$/, diff],
  [/^\/changes\/(\d+)\/(\d+)\/(\d+)$/, changes], [/^\/search\/(\d*)\/([^/&#]+)$/, search]];

async function show() {
  const mine = ++turn;
  const hash = location.hash.slice(1);
  let title = "Not found", parts = [el("h1", {}, "There is no such page"), el("p", {}, link("/", "To the overview"))];
  main.setAttribute("aria-busy", "true");
  try {
    for (const [pattern, page] of routes) {
      const found = pattern.exec(hash);
      if (found) { [title, parts] = await page(...found.slice(1)); break; }
    }
  } catch (error) {
    title = "Error";
    parts = [el("h1", {}, "This did not work"),
      el("div", { class: "banner critical", role: "alert" }, el("p", {}, plain(error.message))), el("p", {}, link("/", "To the overview"))];
  }
  if (mine !== turn) return;
  main.replaceChildren(...parts.filter(Boolean));
  main.removeAttribute("aria-busy");
  main.dataset.view = hash;
  where.textContent = plain(title);
  document.title = plain(title) + " – Varve";
  if (mine > 1) { window.scrollTo(0, 0); main.focus(); }
}

window.addEventListener("hashchange", show);
show();
