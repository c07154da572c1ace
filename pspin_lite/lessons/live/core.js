// Explorers without a kernel: sliders, panels and a table of numbers, from a spec that Python writes (__init__.py).
// A form is a function (values of the controls, spec) -> {panels, lines, texts, numbers}, numbers in the order of
// spec.names, or as pairs of name and number where there is no such list; the other files add some.
window.pspinLive ||= (() => {
  "use strict";
  const TOP = 26, BOTTOM = 40, LEFT = 58, HIGH = 170; // margins of a panel, and its height, in units of the drawing

  // Numbers as Python's format(x, ".3g") writes them: ties go to the even digit
  const isTie = (digits, n) => "02468".includes(digits[n - 1]) && /^50*$/.test(digits.slice(n));
  const nudge = (x, tie) => (tie ? x * (1 - 2 ** -50) : x);
  const strip = text => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

  function fixed(x, places) {
    const digits = Math.abs(x).toFixed(places + 40).replace(".", "");
    return nudge(x, isTie(digits, digits.length - 40)).toFixed(places);
  }

  function general(x, n = 3) {
    if (x === Infinity) return "inf";
    if (!x) return Number.isNaN(x) ? "nan" : "0";
    const digits = Math.abs(x).toExponential(40).split("e")[0].replace(".", "");
    const [mantissa, power] = nudge(x, isTie(digits, n)).toExponential(n - 1).split("e");
    if (power >= -4 && power < n) return strip(Number(`${mantissa}e${power}`).toFixed(n - 1 - power));
    return `${strip(mantissa)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }

  function write(value, tiny) {
    if (typeof value === "string") return value;
    return value && Math.abs(value) < tiny ? `< ${general(tiny)}` : general(value);
  }

  // Elements
  function add(parent, tag, attributes = {}, text) {
    const space = ["svg", "g", "path", "circle", "text", "image"].includes(tag)
      ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  }

  function addControl(parent, { name, label, values, texts, index, slider }, changed) {
    const row = add(parent, "label", { class: "pspin-control" });
    add(row, "span", {}, label);
    const named = { "aria-label": label, "data-control": name, "data-lm-suppress-shortcuts": "true" }; // JupyterLab's
    const at = i => ({ value: values[i], text: texts[i] });
    if (!slider) {
      const select = add(row, "select", named);
      texts.forEach(text => add(select, "option", {}, text));
      select.selectedIndex = index;
      select.addEventListener("input", changed);
      return [name, () => at(select.selectedIndex).value];
    }
    const settings = { type: "range", min: 0, max: values.length - 1, step: 1, value: index };
    const input = add(row, "input", { ...settings, ...named });
    const output = add(row, "output");
    const tell = () => {
      output.textContent = at(input.value).text;
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => (tell(), changed()));
    tell();
    return [name, () => at(input.value).value];
  }

  // Black and grey are the page's ink; on a dark page colours have some of it too (live.css)
  const isInk = (colour, grey) => colour === "black" || colour === grey;
  const mix = colour => `color-mix(in srgb, ${colour} var(--pspin-colour), currentColor)`;
  const ink = (colour, grey) => (isInk(colour, grey) ? "currentColor" : mix(colour));
  const fade = (colour, grey) => (colour === grey ? 0.7 : 1);

  function drawPanel(box, panel, { lines, texts }, { grey, dashes }) {
    const { xlim, ylim, wide, right = 18 } = panel, size = LEFT + wide + right;
    const share = (value, [low, high]) => (value - low) / (high - low);
    const inside = part => Math.min(Math.max(part, 0), 1); // what lies outside is put on the edge
    const x = value => LEFT + wide * inside(share(value, xlim));
    const y = value => TOP + HIGH * (1 - inside(share(value, ylim)));
    if (panel.legend?.length) {
      const legend = add(box, "div", { class: "pspin-legend" });
      for (const { text, colour, mark, dashes: broken } of panel.legend)
        add(legend, "span", { style: `color: ${ink(colour, grey)}` }, `${mark ?? (broken ? "╍" : "━")} ${text}`);
    }
    const svg = add(box, "svg", { viewBox: `0 0 ${size} ${TOP + HIGH + BOTTOM}` });
    svg.style.flex = `${size} 1 ${0.7 * size}px`;
    svg.style.maxWidth = `${1.2 * size}px`;
    const label = (text, [left, top], how) =>
      add(svg, "text", { x: left.toFixed(1), y: top.toFixed(1), fill: "currentColor", ...how }, text);
    const spell = tick => String(tick).replace("-", "−");
    if (panel.image) {
      const place = { x: LEFT, y: TOP, width: wide, height: HIGH, preserveAspectRatio: "none" };
      add(svg, "image", { href: panel.image, style: "image-rendering: pixelated", ...place });
    }
    panel.xticks.forEach((tick, i) => {
      if (!panel.image) add(svg, "path", { d: `M${x(tick)} ${TOP}V${TOP + HIGH}`, class: "pspin-grid" });
      label(spell(panel.xticklabels?.[i] ?? tick), [x(tick), TOP + HIGH + 16], { "text-anchor": "middle" });
    });
    panel.yticks.forEach((tick, i) => {
      if (!panel.image) add(svg, "path", { d: `M${LEFT} ${y(tick)}H${LEFT + wide}`, class: "pspin-grid" });
      label(spell(panel.yticklabels?.[i] ?? tick), [LEFT - 6, y(tick) + 4], { "text-anchor": "end" });
    });
    add(svg, "path", { d: `M${LEFT} ${TOP}V${TOP + HIGH}H${LEFT + wide}`, fill: "none", stroke: "currentColor" });
    label(panel.title, [LEFT + wide / 2, 15], { "text-anchor": "middle", "font-weight": "bold" });
    label(panel.xlabel, [LEFT + wide / 2, TOP + HIGH + 34], { "text-anchor": "middle" });
    const turned = `rotate(-90 13 ${TOP + HIGH / 2})`;
    label(panel.ylabel, [13, TOP + HIGH / 2], { "text-anchor": "middle", transform: turned });
    for (const line of lines) {
      const colour = ink(line.colour, grey), opacity = (line.opacity ?? 1) * fade(line.colour, grey);
      let path = "", pen = "M"; // a gap lifts the pen
      line.x.forEach((value, i) => {
        const here = Number.isFinite(value) && Number.isFinite(line.y[i]) && value !== null;
        if (!here) return void (pen = "M");
        const at = [x(value).toFixed(1), y(line.y[i]).toFixed(1)];
        path += pen + at;
        pen = "L";
        const fill = line.filled === false ? "none" : colour;
        if (line.dot) add(svg, "circle", { cx: at[0], cy: at[1], r: line.dot, fill, stroke: colour, opacity });
      });
      const how = line.fill ? { fill: colour } : { fill: "none", stroke: colour, "stroke-width": line.width ?? 1.3 };
      if (line.dashes) how["stroke-dasharray"] = dashes;
      if (line.width !== 0) add(svg, "path", { d: path, opacity, ...how });
    }
    for (const mark of texts) { // its upper edge at y; x may lie outside the panel
      const how = { "text-anchor": mark.anchor ?? "middle", fill: ink(mark.colour, grey) };
      const at = i => [LEFT + wide * share(mark.x, xlim), y(mark.y) + 9 + 15 * i];
      mark.text.split("\n").forEach((row, i) => label(row, at(i), how));
    }
  }

  function drawNumbers(box, numbers, { names, tiny }) {
    const pairs = names ? numbers.map((value, i) => [names[i], value]) : numbers;
    for (const [name, value] of pairs) {
      const { passage, mark } = value?.passage === undefined ? {} : value; // a text to be read, on a line of its own
      const cell = add(box, "div", passage === undefined ? {} : { class: "pspin-passage" });
      add(cell, "span", {}, name);
      const tag = passage === undefined ? "b" : "code";
      const shown = add(cell, tag, { "data-name": name }, passage ?? write(value, tiny));
      if (typeof value === "number") shown.dataset.value = value;
      const letters = [...(passage ?? "")];
      if (!(mark !== null && mark < letters.length)) continue;
      shown.textContent = letters.slice(0, mark).join("");
      add(shown, "mark", {}, letters[mark]);
      shown.append(letters.slice(mark + 1).join(""));
    }
  }

  const forms = {
    frames(values, spec) { // drawn beforehand, one for each choice; a frame holds places in lists
      const place = spec.controls.reduce((n, { name, values: all }) => n * all.length + all.indexOf(values[name]), 0);
      const pick = ([list, places]) => [list, places.map(i => spec[list][i])];
      return Object.fromEntries(Object.entries(spec.frames[place]).map(pick));
    },
  };

  function mount(script, spec) {
    const root = script.previousElementSibling;
    const choices = add(root, "div", { class: "pspin-controls" });
    const picture = add(root, "div", { class: "pspin-panels", role: "img", "aria-label": spec.alt });
    const table = add(root, "div", { class: "pspin-numbers" });
    const draw = () => {
      const values = Object.fromEntries(getters.map(([name, get]) => [name, get()]));
      const { panels, lines, texts, numbers } = forms[spec.form](values, spec);
      picture.replaceChildren();
      table.replaceChildren();
      const of = i => marks => marks.filter(mark => mark.panel === i);
      panels.forEach((panel, i) => drawPanel(picture, panel, { lines: of(i)(lines), texts: of(i)(texts) }, spec));
      drawNumbers(table, numbers, spec);
    };
    const getters = spec.controls.map(control => addControl(choices, control, draw));
    draw();
    root.hidden = false; // from here on the style sheet hides the still picture
    root.classList.add("pspin-on");
  }

  return { forms, mount, fixed, general, write };
})();
