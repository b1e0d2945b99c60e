"use strict";
// What all explorables share: controls, a small chart, exact intervals. No other library.
const BLUE = "#0072B2", VERMILION = "#D55E00", GREEN = "#009E73", ORANGE = "#E69F00", GREY = "#777777";
const COLOURS = { "gemma-3-270m": BLUE, "smollm2-135m-instruct": VERMILION };

const byId = (id) => document.getElementById(id);
const unique = (values) => [...new Set(values)];
const sum = (values) => values.reduce((a, b) => a + b, 0);
const mean = (values) => sum(values) / values.length;
const percent = (x) => (100 * x).toFixed(0) + "%";
const escaped = (text) => String(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

// A list to choose from: fills <select id>, keeps the choice if it is still there.
function choices(id, values, names) {
  const box = byId(id), before = box.value;
  box.innerHTML = values.map((v, i) => `<option value="${i}">${escaped(names ? names[i] : v)}</option>`).join("");
  box.selectedIndex = Math.max(0, values.indexOf(box.values ? box.values[before] : undefined));
  box.values = values;
}
const chosen = (id) => byId(id).values[byId(id).selectedIndex];

// Calls draw at once, at every change, and when the width changes. A page around this one is told the height.
function live(draw) {
  const again = () => { draw(); parent.postMessage({ height: document.body.offsetHeight }, "*"); };
  for (const control of document.querySelectorAll("select, input")) control.addEventListener("input", again);
  window.addEventListener("resize", again);
  again();
}

// Exact (Clopper-Pearson) 95% bounds of k out of n, by halving.
function exact(k, n) {
  const logs = [0];
  for (let i = 1; i <= n; i++) logs.push(logs[i - 1] + Math.log(i));
  const tail = (p, from, to) => {
    let total = 0;
    for (let i = from; i <= to; i++) {
      total += Math.exp(logs[n] - logs[i] - logs[n - i] + i * Math.log(p) + (n - i) * Math.log1p(-p));
    }
    return total;
  };
  const root = (f) => {
    let low = 1e-9, high = 1 - 1e-9;
    for (let i = 0; i < 40; i++) { const m = (low + high) / 2; if (f(m) > 0) high = m; else low = m; }
    return (low + high) / 2;
  };
  return [k ? root((p) => tail(p, k, n) - 0.025) : 0, k < n ? root((p) => 0.025 - tail(p, 0, k)) : 1];
}

// A chart as SVG in the real width of its place, so that letters stay readable on a phone.
// x, y: {min, max, ticks, label, log}; marks: {x, label, colour}; lines, dots: {points: [{x, y, low, high}], colour, label}
function chart(place, { x, y, lines = [], dots = [], marks = [], height = 300 }) {
  const width = Math.max(280, place.clientWidth || 640), left = 52, right = 12, top = 26, bottom = 46;
  const scale = (axis, a, b) => (v) => {
    const f = axis.log ? Math.log : (z) => z;
    return a + (f(v) - f(axis.min)) / (f(axis.max) - f(axis.min)) * (b - a);
  };
  const sx = scale(x, left, width - right), sy = scale(y, height - bottom, top);
  const parts = [];
  for (const tick of y.ticks) {
    parts.push(`<line x1="${left}" x2="${width - right}" y1="${sy(tick)}" y2="${sy(tick)}" stroke="#e5e5e5"/>`);
    parts.push(`<text x="${left - 6}" y="${sy(tick) + 4}" text-anchor="end">${tick}</text>`);
  }
  const some = [];  // of the ticks, as many as stand apart
  for (const tick of x.ticks) if (!some.length || sx(tick) - sx(some[some.length - 1]) > 38) some.push(tick);
  for (const tick of some) {
    parts.push(`<text x="${sx(tick)}" y="${height - bottom + 18}" text-anchor="middle">${x.names ? x.names[tick] : tick}</text>`);
  }
  parts.push(`<line x1="${left}" x2="${width - right}" y1="${height - bottom}" y2="${height - bottom}" stroke="#444"/>`);
  parts.push(`<text x="${(left + width - right) / 2}" y="${height - 8}" text-anchor="middle">${escaped(x.label)}</text>`);
  parts.push(`<text x="4" y="14">${escaped(y.label)}</text>`);
  for (const band of marks) {
    if (band.to !== undefined) {
      const from = sx(band.x), to = sx(band.to);
      parts.push(`<rect x="${from}" y="${top}" width="${to - from}" height="${height - bottom - top}" fill="${band.colour}" opacity="0.15"/>`);
    } else {
      parts.push(`<line x1="${sx(band.x)}" x2="${sx(band.x)}" y1="${top}" y2="${height - bottom}" stroke="${band.colour}" stroke-dasharray="5 4"/>`);
    }
    const end = sx(band.x) > width * 0.6;
    parts.push(`<text x="${sx(band.x) + (end ? -5 : 5)}" y="${top + 12}" text-anchor="${end ? "end" : "start"}">${escaped(band.label || "")}</text>`);
  }
  for (const line of lines) {
    const path = line.points.map((p, i) => `${i ? "L" : "M"}${sx(p.x).toFixed(1)},${sy(p.y).toFixed(1)}`).join("");
    parts.push(`<path d="${path}" fill="none" stroke="${line.colour}" stroke-width="2.2" stroke-dasharray="${line.dash || ""}"/>`);
  }
  for (const group of dots) for (const p of group.points) {
    if (p.low !== undefined) parts.push(`<line x1="${sx(p.x)}" x2="${sx(p.x)}" y1="${sy(p.low)}" y2="${sy(p.high)}" stroke="${group.colour}"/>`);
    parts.push(`<circle cx="${sx(p.x).toFixed(1)}" cy="${sy(p.y).toFixed(1)}" r="${p.big ? 7 : 4.5}" fill="${p.hollow ? "#fff" : group.colour}" stroke="${group.colour}" stroke-width="2"/>`);
  }
  let at = left;
  const keys = [...lines, ...dots].filter((s) => s.label).map((s) => {
    const text = `<rect x="${at}" y="${height + 6}" width="12" height="12" fill="${s.colour}"/><text x="${at + 17}" y="${height + 17}">${escaped(s.label)}</text>`;
    at += 34 + 7.2 * s.label.length;
    return text;
  });
  place.innerHTML = `<svg role="img" height="${height + 26}" viewBox="0 0 ${width} ${height + 26}">${parts.join("")}${keys.join("")}</svg>`;
}
