// The heat map: one canvas for each level, of predicted loads. A column is a switch, a cell
// is one of its links; where there are more columns than pixels, a pixel shows the largest of its links.
"use strict";

const Heat = (() => {
  const EDGES = [500, 1000, 1500, 2000, 3000];
  const NAMES = ["unused", "to ½ full", "to full", "to 1½ × full", "to 2 ×", "to 3 ×", "more"];
  let fabric = null, values = null, lit = null, cursor = -1;
  let blocks = [], tell = () => {}, colours = [];

  function classOf(value) {
    if (value === 0) return 0;
    let k = 1;
    for (const edge of EDGES) { if (value <= edge) return k; k++; }
    return k;
  }

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    colours = [0, 1, 2, 3, 4, 5, 6].map((k) => style.getPropertyValue("--q" + k).trim());
    colours.push(style.getPropertyValue("--paper").trim(), style.getPropertyValue("--ink").trim());
  }

  // The columns of a level: switches in order, and the place of each cell in them.
  function layOut(level) {
    const { first, cells } = level, source = fabric.source;
    const column = new Int32Array(cells), row = new Int32Array(cells), start = [];
    let last = -1, rows = 0;
    for (let i = 0; i < cells; i++) {
      if (source[first + i] !== last) { last = source[first + i]; start.push(i); }
      column[i] = start.length - 1;
      row[i] = i - start[start.length - 1];
      if (row[i] >= rows) rows = row[i] + 1;
    }
    return { level, column, row, start, columns: start.length, rows };
  }

  function build(root) {
    root.textContent = "";
    blocks = fabric.levels.map((level) => {
      const block = layOut(level);
      const head = document.createElement("h3");
      head.textContent = `${level.name} (${level.cells.toLocaleString("en")} links)`;
      const canvas = document.createElement("canvas");
      canvas.tabIndex = 0;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `predicted: ${level.name}; arrow keys move from link to link`);
      canvas.addEventListener("click", (event) => pick(block, canvas, event));
      canvas.addEventListener("keydown", (event) => move(block, event));
      block.canvas = canvas;
      root.append(head, canvas);
      return block;
    });
  }

  function drawBlock(block) {
    const canvas = block.canvas, ratio = Math.min(window.devicePixelRatio || 1, 2);
    const wide = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const tallCell = Math.max(4, Math.min(14, 160 / block.rows));
    const tall = Math.round(tallCell * block.rows * ratio);
    if (canvas.width !== wide || canvas.height !== tall) {
      canvas.width = wide;
      canvas.height = tall;
      canvas.style.height = tall / ratio + "px";
    }
    const pen = canvas.getContext("2d"), own = values, { level, column, row } = block;
    pen.fillStyle = colours[7];
    pen.fillRect(0, 0, wide, tall);
    if (!own) return;
    const columns = Math.min(block.columns, wide), cell = wide / columns, high = tall / block.rows;
    const gap = cell >= 4 * ratio && high >= 4 * ratio ? ratio : 0;
    const grid = new Int32Array(columns * block.rows).fill(-2);  // -2: there is no link
    const on = lit ? new Uint8Array(grid.length) : null;
    for (let i = 0; i < level.cells; i++) {
      const at = Math.floor(column[i] * columns / block.columns) * block.rows + row[i];
      const value = own[level.first + i], light = lit ? lit[level.first + i] : 1;
      if (on && on[at] > light) continue;
      if (on && light > on[at]) { on[at] = 1; grid[at] = value; }
      else if (value > grid[at]) grid[at] = value;
    }
    const byClass = Array.from({ length: 7 }, () => []), dim = Array.from({ length: 7 }, () => []);
    for (let at = 0; at < grid.length; at++) {
      if (grid[at] > -2) (on && !on[at] ? dim : byClass)[classOf(grid[at])].push(at);
    }
    const paint = (lists) => lists.forEach((list, k) => {
      pen.fillStyle = colours[k];
      for (const at of list) {
        const x = Math.floor(at / block.rows) * cell, y = (at % block.rows) * high;
        pen.fillRect(x, y, Math.max(1, cell - gap), high - gap);
      }
    });
    pen.globalAlpha = 0.18;
    paint(dim);
    pen.globalAlpha = 1;
    paint(byClass);
    const here = cursor - level.first;
    if (here >= 0 && here < level.cells) {
      const x = Math.floor(column[here] * columns / block.columns) * cell, y = row[here] * high;
      pen.strokeStyle = colours[8];
      pen.lineWidth = 2 * ratio;
      pen.strokeRect(x - ratio, y - ratio, Math.max(cell, 3 * ratio) + 2 * ratio, high + 2 * ratio);
    }
  }

  function draw() {
    const began = performance.now();
    readColours();
    blocks.forEach(drawBlock);
    document.getElementById("maps").dataset.drawn = (performance.now() - began).toFixed(1);
  }

  // The cell of a block at a column and row, or the nearest one in that column.
  function cellAt(block, column, row) {
    const from = block.start[column];
    const next = column + 1 < block.columns ? block.start[column + 1] : block.level.cells;
    return block.level.first + Math.min(from + row, next - 1);
  }

  function choose(cell) { cursor = cell; draw(); tell(cell); }

  function pick(block, canvas, event) {
    const box = canvas.getBoundingClientRect();
    const part = (value, size) => Math.min(0.999999, Math.max(0, value / size));
    const column = Math.floor(part(event.clientX - box.left, box.width) * block.columns);
    const row = Math.floor(part(event.clientY - box.top, box.height) * block.rows);
    choose(cellAt(block, column, row));
  }

  function move(block, event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      choose(cellAt(block, event.key === "Home" ? 0 : block.columns - 1, 0));
      return;
    }
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const here = cursor - block.level.first;
    if (here < 0 || here >= block.level.cells) { choose(block.level.first); return; }
    const clamp = (value, most) => Math.min(most, Math.max(0, value));
    const column = clamp(block.column[here] + step[0], block.columns - 1);
    choose(cellAt(block, column, clamp(block.row[here] + step[1], block.rows - 1)));
  }

  function legend() {
    const list = document.getElementById("legend"), title = document.createElement("li");
    title.textContent = "predicted";
    list.append(title);
    NAMES.forEach((name, k) => {
      const item = document.createElement("li"), box = document.createElement("i");
      box.className = "k" + k;
      item.append(box, name);
      list.append(item);
    });
  }

  return {
    legend,
    onPick(act) { tell = act; },
    fabric() { return fabric; },
    setFabric(next) { fabric = next; cursor = -1; lit = null; build(document.getElementById("maps")); },
    setValues(predicted) { values = predicted; },
    light(cells) {
      lit = null;
      if (cells && fabric) { lit = new Uint8Array(fabric.source.length); for (const c of cells) lit[c] = 1; }
      draw();
    },
    cursor() { return cursor; },
    leave() { cursor = -1; draw(); },
    values() { return values; },
    draw,
  };
})();
