// SPDX-License-Identifier: Apache-2.0
// Makes the elements of the page. Every name and text of a version becomes text, never markup.
"use strict";

let turn = 0; // Counts changes of the page, so that a late answer changes nothing.

// Returns an element with attributes and children; a child that is no element becomes text.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

// Characters that change the direction of the text around them are shown as their codes.
function plain(text) {
  return String(text).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

const name = (text) => el("bdi", { class: "name" }, plain(text));
const link = (hash, ...children) => el("a", { href: "#" + hash }, ...children);
const button = (href, text, current) =>
  el("a", { class: "button", href, "aria-current": current && "page" }, text);
const ENCODED = new Set(["path", "behind", "name"]); // The values of these are percent-encoded already.
const query = (values) => "?" + Object.entries(values)
  .map(([key, value]) => key + "=" + (ENCODED.has(key) ? value : encodeURIComponent(value))).join("&");

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = Math.abs(bytes), unit = 0;
  while (value >= 1023.95 && unit + 1 < units.length) { value /= 1024; unit += 1; }
  return (bytes < 0 ? "−" : "") + (unit ? value.toFixed(1) : value) + " " + units[unit];
}
const signed = (value, text) => (value > 0 ? "+" : "") + text(value);
const count = (number) => number.toLocaleString("en").replace(/,/g, "\u202f").replace("-", "−");
const plural = (number, one, many) => count(number) + " " + (number === 1 ? one : many || one + "s");

function date(seconds) {
  const time = new Date(seconds * 1000);
  if (!Number.isFinite(time.getTime())) return seconds + " s";
  const two = (number) => String(number).padStart(2, "0");
  return time.getFullYear() + "-" + two(time.getMonth() + 1) + "-" + two(time.getDate()) + " " +
    two(time.getHours()) + ":" + two(time.getMinutes());
}
const when = (seconds) => el("time", { class: "nowrap" }, date(seconds));

function age(seconds) {
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"]];
  for (const [length, word] of units) {
    if (seconds >= 2 * length) return Math.floor(seconds / length) + " " + word + "s ago";
  }
  return "just now";
}

// Returns a bar of one or two parts, each in percent of the whole.
function bar(label, ...shares) {
  const track = el("span", { class: "track", role: "img", "aria-label": label });
  for (const [share, kind] of shares) {
    const part = el("span", { class: kind });
    part.style.setProperty("--share", Math.max(0, Math.min(100, share)));
    track.append(part);
  }
  return track;
}

// Returns a table whose rows become cards on a narrow screen. A column is [title, class].
function table(caption, columns, rows) {
  const body = el("tbody");
  for (const row of rows) {
    const line = el("tr");
    row.forEach((cell, i) => line.append(
      el("td", { class: columns[i][1], "data-label": columns[i][0] }, ...[cell].flat())));
    body.append(line);
  }
  return el("table", { class: "cards" }, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...columns.map(([title, kind]) =>
      el("th", { scope: "col", class: kind === "number" ? "number" : undefined }, title)))), body);
}

const facts = (...pairs) => el("dl", { class: "facts" },
  ...pairs.map(([title, value]) => el("div", {}, el("dt", {}, title), el("dd", {}, value))));

// Returns a form that searches for names in a series, or in all of them without its id.
function searchForm(id, text) {
  const input = el("input", { type: "search", id: "search", maxlength: "80", autocomplete: "off", spellcheck: "false",
    placeholder: "part of a name, or *.txt" });
  input.value = text || "";
  const form = el("form", { class: "search", role: "search" },
    el("label", { for: "search" }, id ? "Find in this series" : "Find in all versions"), input,
    el("button", { type: "submit" }, "Find"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = input.value.trim().replace(/\p{Surrogate}/gu, "\ufffd");
    if (wanted) location.hash = "/search/" + (id || "") + "/" + encodeURIComponent(wanted);
  });
  return form;
}

// Returns an element that lists rows page by page. `load(end)` answers {rows, names, end, cut}, where
// `end` is the place to go on from, or undefined behind the last page. Goes on by itself until there
// are rows to show, and ends that when another view is opened.
async function pages(load, draw) {
  const list = el("div");
  const mine = turn, rows = [];
  let names = 0, answer;
  const status = el("p", { class: "quiet", role: "status" });
  const take = async (end) => {
    answer = await load(end);
    rows.push(...answer.rows);
    names += answer.names;
  };
  const show = (searching) => {
    const parts = [rows.length ? draw(rows, answer.end !== undefined) : null, status];
    status.textContent = searching || (answer.end !== undefined) || !rows.length ?
      plural(names, "name was", "names were") + " looked at" + (searching ? " so far…" :
        answer.end !== undefined ? "." : rows.length ? "." : "; none is to be listed.") : "";
    if (answer.cut) status.textContent += " Names below a very long path are left out; the command line lists all.";
    if (answer.end !== undefined && !searching) {
      const more = el("button", { type: "button" }, "Show more");
      more.addEventListener("click", () => go(answer.end));
      parts.push(el("p", {}, more));
    }
    list.replaceChildren(...parts.filter(Boolean));
  };
  const go = async (end) => {
    const had = rows.length;
    try {
      do {
        await take(end);
        end = answer.end;
        show(end !== undefined && rows.length === had);
      } while (end !== undefined && rows.length === had && mine === turn);
    } catch (error) {
      list.append(el("p", { class: "banner critical", role: "alert" }, plain(error.message)));
    }
  };
  await take(undefined);
  const searching = !rows.length && answer.end !== undefined;
  show(searching);
  if (searching) go(answer.end);
  return list;
}
