
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = JSON.parse($("#data").textContent);
  const list = $("#list"), sizer = $("#sizer"), rows = $("#rows"), detail = $("#detail"), filter = $("#filter"), count = $("#count");
  const rowHeight = 24, overscan = 8;
  const byAddress = new Map(all.map((e, i) => [e.a, i]));
  let shown = all.map((_, i) => i); // indexes of all that match the filter
  let chosen = -1;

  function element(name, className, text) {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  // Times and sizes, as the rest of the page writes them.
  function offset(ms) {
    if (ms < 1000) return "+" + Math.round(ms) + "ms";
    if (ms < 100000) return "+" + (ms / 1000).toFixed(3) + "s";
    const s = Math.round(ms / 1000);
    return s < 3600 ? `+${Math.floor(s / 60)}m${String(s % 60).padStart(2, "0")}s` : `+${Math.floor(s / 3600)}h${String(Math.floor(s % 3600 / 60)).padStart(2, "0")}m`;
  }
  function size(n) {
    for (const unit of ["B", "kB", "MB"]) {
      if (n < 1000) return (unit === "B" || n >= 9.95 ? Math.round(n) : n.toFixed(1)) + " " + unit;
      n /= 1000;
    }
    return n.toFixed(1) + " GB";
  }

  // The filter: terms that all must match, or, between OR, those of one side.
  const severity = { note: 1, warning: 2, error: 3 };
  const worst = e => (e.f || []).reduce((w, [s]) => severity[s] > (severity[w] || 0) ? s : w, "");
  const glob = text => new RegExp("^" + text.split("*").map(s => s.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*") + "$", "i");
  const textual = get => value => { const r = glob(value); return e => !!get(e) && r.test(get(e)); };
  const prefixed = get => value => { const r = glob(value + (value.endsWith("*") ? "" : "*")); return e => !!get(e) && r.test(get(e)); };
  function numeric(get) {
    const number = text => {
      const m = /^(\d+(?:\.\d+)?)(k|m)?$/i.exec(text);
      if (!m) throw new Error(`"${text}" is no number`);
      return m[1] * ({ k: 1e3, m: 1e6 }[(m[2] || "").toLowerCase()] || 1);
    };
    return value => {
      const range = /^(.*)\.\.(.*)$/.exec(value);
      if (range) {
        const low = range[1] ? number(range[1]) : -Infinity, high = range[2] ? number(range[2]) : Infinity;
        return e => get(e) >= low && get(e) <= high;
      }
      const n = number(value.replace(/^[<>]=?/, "")), sign = /^[<>]=?/.exec(value);
      return { "<": e => get(e) < n, ">": e => get(e) > n, "<=": e => get(e) <= n, ">=": e => get(e) >= n }[sign] || (e => get(e) === n);
    };
  }
  const has = {
    finding: e => !!e.f, error: e => worst(e) === "error", run: e => !!e.r, tool: e => !!e.l,
  };
  const fields = {
    type: textual(e => e.y), name: textual(e => e.n), cmd: textual(e => e.d === "client" && e.n), dir: prefixed(e => e.d), win: textual(e => e.w),
    run: prefixed(e => e.r), thread: prefixed(e => e.h), tool: textual(e => e.l), src: textual(e => e.s || "live"),
    seq: numeric(e => e.q || 0), size: numeric(e => e.z), at: numeric(e => parseFloat(e.a)),
    rule: value => { const r = glob(value); return e => (e.f || []).some(f => r.test(f[1])); },
    sev: value => { if (!severity[value]) throw new Error(`"${value}" is none of error, warning and note`); return e => worst(e) === value; },
    has: value => { if (!has[value]) throw new Error(`has: knows ${Object.keys(has).join(", ")}`); return has[value]; },
    text: words,
  };
  function words(text) {
    const wanted = text.toLowerCase();
    return e => (e.low ??= (e.n + " " + (e.y || "") + " " + (e.b || "") + " " + e.p).toLowerCase()).includes(wanted);
  }
  function term(token) {
    const not = token.startsWith("-") && token.length > 1;
    const bare = not ? token.slice(1) : token;
    const m = /^([a-z]+):(.*)$/s.exec(bare);
    const unquote = s => s.replace(/^"(.*?)"?$/s, "$1");
    let test;
    if (m && fields[m[1]]) test = fields[m[1]](unquote(m[2]));
    else if (m && !/^(run|thread|protocol|task)$/.test(m[1])) throw new Error(`no field "${m[1]}": there are ${Object.keys(fields).join(" ")}`);
    else test = words(unquote(bare));
    return not ? e => !test(e) : test;
  }
  function parse(text) {
    const sides = [[]];
    for (const token of text.match(/-?(?:[a-z]+:)?"[^"]*"?|\S+/g) || []) {
      if (token === "OR") sides.push([]); else sides[sides.length - 1].push(term(token));
    }
    return e => sides.some(terms => terms.every(t => t(e)));
  }
  function applyFilter() {
    let wanted;
    try {
      wanted = parse(filter.value.trim());
    } catch (error) {
      filter.classList.add("wrong");
      count.className = "wrong";
      count.textContent = error.message;
      return;
    }
    filter.classList.remove("wrong");
    count.className = "";
    shown = [];
    all.forEach((e, i) => { if (wanted(e)) shown.push(i); });
    const n = x => x.toLocaleString("en");
    count.textContent = shown.length === all.length ? n(all.length) : `${n(shown.length)} of ${n(all.length)}`;
    for (const chip of document.querySelectorAll("[data-filter]")) chip.setAttribute("aria-pressed", chip.dataset.filter === filter.value.trim());
    sizer.style.height = Math.max(shown.length * rowHeight, 1) + "px";
    const at = shown.indexOf(chosen);
    if (at >= 0) intoView(at); else list.scrollTop = 0;
    draw();
  }

  // The list holds only the rows that can be seen.
  let drawn = false;
  function draw() {
    if (drawn) return;
    drawn = true;
    requestAnimationFrame(() => { drawn = false; drawNow(); });
  }
  function drawNow() {
    const first = Math.max(Math.floor(list.scrollTop / rowHeight) - overscan, 0);
    const last = Math.min(first + Math.ceil(list.clientHeight / rowHeight) + 2 * overscan, shown.length);
    rows.style.transform = `translateY(${first * rowHeight}px)`;
    rows.replaceChildren(...shown.slice(first, last).map(line));
    if (!shown.length) rows.append(element("p", "quiet e", "Nothing matches."));
    if (chosen >= 0) list.setAttribute("aria-activedescendant", "row" + chosen); else list.removeAttribute("aria-activedescendant");
  }
  function line(i) {
    const e = all[i], row = element("div", "e " + (e.d || "") + " " + (e.s || ""));
    row.id = "row" + i;
    row.dataset.index = i;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", i === chosen);
    const type = element("span", "y");
    if (e.f) {
      const dot = element("i", "sev-" + worst(e));
      dot.title = e.f.map(f => f[1]).join(", ");
      type.append(dot);
    }
    type.append(e.y || e.n);
    row.append(element("span", "n", "#" + e.a), element("span", "t", offset(e.t)), element("span", "d", e.d === "client" ? "›" : e.d ? "‹" : "·"), type, element("span", "b", e.b || ""));
    return row;
  }
  function intoView(at) {
    const top = at * rowHeight;
    if (top < list.scrollTop + rowHeight) list.scrollTop = Math.max(top - rowHeight, 0);
    else if (top + 2 * rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + 2 * rowHeight - list.clientHeight;
  }

  // Choosing an envelope shows it whole, and marks the construct that it is of.
  function choose(i) {
    if (i < 0 || i >= all.length) return;
    chosen = i;
    let at = shown.indexOf(i);
    if (at < 0) {
      filter.value = "";
      applyFilter();
      at = i;
    }
    showDetail(all[i]);
    intoView(at);
    draw();
    for (const e of document.querySelectorAll(".on")) e.classList.remove("on");
    if (all[i].c !== undefined) {
      for (const e of document.querySelectorAll(`.i[data-row="${all[i].c}"], .wf [data-row="${all[i].c}"]:not(a)`)) e.classList.add("on");
    }
    history.replaceState(null, "", "#e" + all[i].a);
  }
  const inChat = e => e.c === undefined ? null : $(`.i[data-row="${e.c}"]`);
  function toChat() {
    if (chosen >= 0) inChat(all[chosen])?.scrollIntoView({ block: "center" });
  }
  function step(by) {
    if (!shown.length) return;
    const at = shown.indexOf(chosen);
    choose(shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1)]);
  }
  function stepFinding(by) {
    for (let i = chosen < 0 ? (by > 0 ? 0 : all.length - 1) : chosen + by; i >= 0 && i < all.length; i += by) {
      if (all[i].f) { choose(i); toChat(); return; }
    }
  }
  function showDetail(e) {
    const tools = element("div", "tools");
    const tool = (text, act) => { const b = element("button", "", text); b.type = "button"; b.addEventListener("click", act); tools.append(b); return b; };
    if (inChat(e)) tool("transcript", toChat);
    const copy = tool("copy", () => copyText(e.p, copy));
    const parts = [e.n !== (e.y || e.n) && e.n, e.w && `window ${e.w}, from the ${e.d}`, e.r && `run ${e.r}`, e.q && `seq ${e.q}`, e.h && `thread ${e.h}`, e.l && `tool ${e.l}`, size(e.z), e.s];
    detail.replaceChildren(tools, element("h3", "", `#${e.a}  ${e.y || e.n}`), element("p", "kind", [offset(e.t), ...parts.filter(Boolean)].join(" · ")));
    for (const [s, rule, text] of e.f || []) {
      const found = element("p", "found sev-" + s);
      found.append(element("b", "sev", s === "error" ? "✖ " : s === "warning" ? "⚠ " : "· "), element("code", "", rule), " " + text);
      detail.append(found);
    }
    const pre = element("pre");
    layOut(e.p, pre);
    detail.append(pre);
    if (e.z > e.p.length + 4 && new TextEncoder().encode(e.p).length + 4 < e.z) detail.append(element("p", "quiet", `cut: the whole has ${size(e.z)}`));
    detail.classList.remove("empty");
    detail.scrollTop = 0;
  }
  function copyText(text, button) {
    const done = word => { button.textContent = word; };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => done("copied"), () => done("not allowed"));
    else done("not allowed");
  }

  // layOut writes JSON over lines. It only cuts the text into tokens: numbers
  // keep their digits, and what is cut off or broken is shown as it is.
  function layOut(text, pre) {
    const token = /"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]|\s+|[^\s{}[\],:"]+/g;
    let depth = 0, plain = "", m, spans = 0;
    const flush = () => { if (plain) pre.append(plain); plain = ""; };
    const styled = (className, t) => { if (++spans > 4000) plain += t; else { flush(); pre.append(element("span", className, t)); } };
    const newline = () => { plain += "\n" + "  ".repeat(Math.min(depth, 40)); };
    if (!/^\s*[[{]/.test(text)) { pre.append(text); return; }
    while ((m = token.exec(text))) {
      const t = m[0], next = text.slice(token.lastIndex).match(/^\s*(.)/)?.[1];
      if (t === "{" || t === "[") {
        plain += t;
        if (next === "}" || next === "]") continue;
        depth++; newline();
      } else if (t === "}" || t === "]") {
        if (!/[{[]$/.test(plain)) { depth = Math.max(depth - 1, 0); newline(); }
        plain += t;
      } else if (t === ",") { plain += t; newline(); }
      else if (t === ":") plain += ": ";
      else if (t[0] === '"') styled(next === ":" ? "j-k" : "j-s", t);
      else if (/^[-\d]/.test(t)) styled("j-n", t);
      else if (/^(true|false|null)$/.test(t)) styled("j-n", t);
      else if (t.trim()) styled("j-w", t);
    }
    flush();
  }

  filter.addEventListener("input", applyFilter);
  $("#filter-form").addEventListener("submit", event => { event.preventDefault(); list.focus(); });
  list.addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", draw);
  list.addEventListener("click", event => {
    const row = event.target.closest("[data-index]");
    if (row) choose(+row.dataset.index);
  });
  document.addEventListener("click", event => {
    const chip = event.target.closest("[data-filter]");
    if (chip) { filter.value = chip.dataset.filter; applyFilter(); return; }
    const link = event.target.closest("[data-at]");
    const own = event.target.closest("a, summary, pre, button");
    if (!link || own && own !== link || !byAddress.has(link.dataset.at) || link.matches(".i") && String(getSelection())) return;
    event.preventDefault();
    choose(byAddress.get(link.dataset.at));
    if (link.closest("#findings, #waterfall") && matchMedia("(min-width: 1180px)").matches) toChat();
    else if (!link.matches(".i") && !matchMedia("(min-width: 1180px)").matches) $("#envelopes").scrollIntoView();
  });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === filter) {
      if (event.key === "Escape") { filter.value = ""; applyFilter(); list.focus(); event.preventDefault(); }
      return;
    }
    if ($("#help").open) return;
    const onList = document.activeElement === list;
    const keys = {
      j: () => step(1), k: () => step(-1), g: () => choose(shown[0]), G: () => choose(shown[shown.length - 1]), n: () => stepFinding(1), N: () => stepFinding(-1),
      c: toChat, "/": () => { filter.focus(); filter.select(); }, "?": () => $("#help").showModal(), Escape: () => { filter.value = ""; applyFilter(); },
    };
    if (onList) {
      const page = Math.max(Math.floor(list.clientHeight / rowHeight) - 1, 1);
      Object.assign(keys, { ArrowDown: keys.j, ArrowUp: keys.k, Home: keys.g, End: keys.G, PageDown: () => step(page), PageUp: () => step(-page), Enter: toChat });
    }
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  $("#help-open").hidden = false;
  $("#help-open").addEventListener("click", () => $("#help").showModal());

  let folded = [];
  addEventListener("beforeprint", () => { folded = [...document.querySelectorAll("details:not([open])")]; folded.forEach(d => { d.open = true; }); });
  addEventListener("afterprint", () => folded.forEach(d => { d.open = false; }));
  const fromHash = () => {
    const at = /^#e([\d.]+)$/.exec(location.hash)?.[1];
    if (at && byAddress.has(at)) { choose(byAddress.get(at)); toChat(); }
  };
  addEventListener("hashchange", fromHash);
  applyFilter();
  fromHash();
})();
