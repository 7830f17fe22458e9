"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const stored = {
    get: (key) => { try { return sessionStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { sessionStorage.setItem(key, value); } catch { /* private mode: nothing is stored */ } },
  };

  // The theme button cycles through system, light and dark.
  const themes = ["system", "light", "dark"];
  const themeButton = document.getElementById("theme");
  const setTheme = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    themeButton.textContent = `Theme: ${theme}`;
    stored.set("theme", theme);
  };
  setTheme(themes.includes(stored.get("theme")) ? stored.get("theme") : "system");
  themeButton.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "system";
    setTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
  });

  // Before printing, open the remarks, and the details if there are at most two runs.
  let unfolded = [];
  addEventListener("beforeprint", () => {
    const runs = all("section > details");
    unfolded = [...all("details.note"), ...(runs.length < 3 ? runs : [])].filter((d) => !d.open);
    unfolded.forEach((d) => { d.open = true; });
  });
  addEventListener("afterprint", () => unfolded.forEach((d) => { d.open = false; }));

  // Tabs: arrow keys move by one, Home and End to the first and last.
  all('[role="tablist"]').forEach((list, number) => {
    const tabs = all('[role="tab"]', list);
    const choose = (index, focus) => {
      tabs.forEach((tab, i) => {
        tab.setAttribute("aria-selected", String(i === index));
        tab.tabIndex = i === index ? 0 : -1;
        document.getElementById(tab.getAttribute("aria-controls")).hidden = i !== index;
      });
      if (focus) tabs[index].focus();
      stored.set(`tab-${number}`, index);
    };
    tabs.forEach((tab, i) => {
      tab.addEventListener("click", () => choose(i, false));
      tab.addEventListener("keydown", (event) => {
        const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        choose((to + tabs.length) % tabs.length, true);
      });
    });
    choose(Math.min(Number(stored.get(`tab-${number}`)) || 0, tabs.length - 1), false);
  });

  // Sorting: the first click sorts numbers descending, text ascending; empty cells last; fixed rows stay on top.
  const compare = (a, b, way) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    return way * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y);
  };
  all("table[data-sortable]").forEach((table) => {
    const heads = all("thead th", table);
    heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const other = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((each) => each.hasAttribute("aria-sort") && each.setAttribute("aria-sort", each === head ? order : "none"));
      const body = table.tBodies[0];
      const rows = [...body.rows].slice(Number(table.dataset.fixed));
      const key = (row) => row.cells[column].dataset.order;
      rows.sort((a, b) => compare(key(a), key(b), order === "ascending" ? 1 : -1));
      rows.forEach((row) => body.append(row));
    }));
  });

  // Figures: show values under the pointer, or at the position chosen by arrow keys.
  const figures = JSON.parse(document.getElementById("data").textContent).figures;
  const off = new Set();
  const shown = (value, axis) => {
    if (axis.names) return axis.names[Math.round(value)] ?? "";
    const text = axis.percent ? `${(100 * value).toFixed(1)} %` : String(Number(value.toPrecision(4)));
    return text.replace("-", "−");
  };
  const place = (value, axis, start, end) => {
    const at = axis.log ? Math.log10(value) : value;
    return start + ((at - axis.low) / (axis.high - axis.low)) * (end - start);
  };
  const element = (tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };

  all("figure[data-chart]").forEach((figure) => {
    const chart = figures[figure.dataset.chart];
    const own = figure.querySelector(".key") !== null;
    const [svg, tip] = [figure.querySelector("svg[role=img]"), figure.querySelector(".tip")];
    const cursor = svg.querySelector(".cursor");
    const [width, height, left, top, right, bottom] = chart.box;
    const visible = () => chart.series.filter((s) => own || !off.has(s.slot));
    const stops = () => {
      if (chart.nearest === "x") return [...new Set(visible().flatMap((s) => s.x))].sort((a, b) => a - b);
      return visible().flatMap((s) => s.x.map((x, i) => ({ s, i, x, y: s.y[i] })));
    };
    let at = -1;

    const row = (s, i) => {
      const line = element("div");
      line.append(element("i", "", s.slot < 0 ? "base" : `s${s.slot % 8}`), element("span", s.name));
      const ends = s.low && s.low[i] !== null && s.high[i] !== null;
      const range = ends ? ` [${shown(s.low[i], chart.y)}, ${shown(s.high[i], chart.y)}]` : "";
      line.append(element("span", shown(s.y[i], chart.y) + range, "value"));
      return line;
    };
    const show = (stop) => {
      const x = chart.nearest === "x" ? stop : stop.x;
      const rows = chart.nearest === "x"
        ? visible().map((s) => [s, s.x.indexOf(stop)]).filter(([, i]) => i >= 0).sort((a, b) => b[0].y[b[1]] - a[0].y[a[1]])
        : [[stop.s, stop.i]];
      const noted = chart.nearest === "point" && stop.s.notes ? ` · ${stop.s.notes[stop.i]}` : "";
      tip.replaceChildren(element("b", `${chart.x.label} ${shown(x, chart.x)}${noted}`), ...rows.map(([s, i]) => row(s, i)));
      tip.hidden = false;
      const pixel = place(x, chart.x, left, right);
      const scale = svg.getBoundingClientRect().width / width;
      const room = figure.getBoundingClientRect().width - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(room, pixel < width / 2 ? pixel * scale + 12 : pixel * scale - tip.offsetWidth - 12))}px`;
      const y = chart.nearest === "x" ? top : place(stop.y, chart.y, bottom, top);
      tip.style.top = `${Math.max(0, y * scale - (chart.nearest === "x" ? 0 : tip.offsetHeight + 10))}px`;
      cursor.setAttribute("x1", pixel);
      cursor.setAttribute("x2", pixel);
      cursor.style.visibility = chart.nearest === "x" ? "visible" : "hidden";
    };
    const hide = () => { tip.hidden = true; cursor.style.visibility = "hidden"; };
    const distance = (stop, x, y) => chart.nearest === "x"
      ? Math.abs(place(stop, chart.x, left, right) - x)
      : Math.hypot(place(stop.x, chart.x, left, right) - x, place(stop.y, chart.y, bottom, top) - y);

    svg.addEventListener("pointermove", (event) => {
      const rect = svg.getBoundingClientRect();
      const [x, y] = [((event.clientX - rect.left) / rect.width) * width, ((event.clientY - rect.top) / rect.height) * height];
      const known = stops();
      if (!known.length) return;
      at = known.reduce((best, stop, i) => (distance(stop, x, y) < distance(known[best], x, y) ? i : best), 0);
      show(known[at]);
    });
    figure.addEventListener("pointerleave", hide);
    figure.addEventListener("blur", hide);
    figure.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const known = stops();
      if (!move || !known.length) return;
      event.preventDefault();
      at = Math.max(0, Math.min(known.length - 1, at + move));
      show(known[at]);
    });
  });

  // Legend: a click on a setting hides or shows it in every figure that draws settings.
  all(".legend button").forEach((button) => button.addEventListener("click", () => {
    const slot = Number(button.dataset.slot);
    if (!off.delete(slot)) off.add(slot);
    all(`.legend [data-slot="${slot}"]`).forEach((each) => each.setAttribute("aria-pressed", String(!off.has(slot))));
    all(`figure [data-slot="${slot}"]`).forEach((mark) => {
      if (!mark.closest("figure").querySelector(".key")) mark.classList.toggle("off", off.has(slot));
    });
  }));
})();
