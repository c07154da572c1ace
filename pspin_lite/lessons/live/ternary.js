// Rounding to three values: three_values in figures/ternary.py. Python counts, for each threshold that the slider has,
// the share of weights above it and the sum of their magnitudes; the rest is formulas.
pspinLive.forms.ternary ??= ({ threshold, scale, weights }, spec) => {
  const { share, total, square, density } = spec.samples[weights], { blue, green, red } = spec.colours;
  const thresholds = spec.controls.find(({ name }) => name === "threshold").values, at = thresholds.indexOf(threshold);
  const best = i => total[i] / Math.max(share[i], 1e-12);
  const error = (i, s) => Math.sqrt(Math.max(square - 2 * s * total[i] + s * s * share[i], 0) / square);
  const zeros = 1 - share[at];
  const bits = -[zeros, (1 - zeros) / 2, (1 - zeros) / 2].reduce((sum, p) => (p > 0 ? sum + p * Math.log2(p) : sum), 0);

  const { bins } = spec, lines = [], texts = [], top = 1.15 * Math.max(...density);
  const { fixed } = pspinLive, lowest = Math.min(...thresholds.map((_, i) => error(i, best(i))));
  const titles = [
    `${fixed(100 * zeros, 0)}% of the weights become 0`,
    `error ${fixed(error(at, scale), 3)}, lowest possible ${fixed(lowest, 3)}`,
  ];
  const panels = [{ ...spec.panels[0], title: titles[0], ylim: [0, top] }, { ...spec.panels[1], title: titles[1] }];
  const middles = density.map((_, i) => (bins[i] + bins[i + 1]) / 2);
  const codes = middles.map(w => (Math.abs(w) > threshold ? Math.sign(w) : 0));
  spec.becomes.forEach(({ code, colour }) => {
    const heights = density.map((height, i) => (codes[i] === code ? height : 0)); // stairs
    const x = heights.flatMap((_, i) => [bins[i], bins[i + 1]]), y = heights.flatMap(height => [height, height]);
    lines.push({ panel: 0, x: [x[0], ...x, x.at(-1)], y: [0, ...y, 0], colour, fill: true });
  });
  [-scale, 0, scale].forEach(x => texts.push({ panel: 0, x, y: 0.06 * top, text: "▲", colour: "black" }));
  spec.keys.forEach(([text, colour], i) =>
    texts.push({ panel: 0, x: 0.96 * bins[0], y: (1 - 0.09 * i) * top, text, colour, anchor: "start" }));
  lines.push({ panel: 1, x: thresholds, y: thresholds.map((_, i) => error(i, scale)), colour: blue });
  lines.push({ panel: 1, x: thresholds, y: thresholds.map((_, i) => error(i, best(i))), colour: green });
  lines.push({ panel: 1, x: [threshold], y: [error(at, scale)], colour: red, width: 0, dot: 4 });
  spec.lines.forEach(([text, colour], i) =>
    texts.push({ panel: 1, x: 0.55 * thresholds.at(-1), y: 0.29 - 0.09 * i, text, colour, anchor: "start" }));

  return { panels, lines, texts, numbers: [
    fixed(error(at, scale), 3), // relative error
    `${fixed(100 * zeros, 1)} %`, // share of zeros
    fixed(total[at] / Math.sqrt(Math.max(share[at], 1e-12) * square), 3), // cosine
    fixed(best(at), 2), // best scale here
    fixed(error(at, best(at)), 3), // error with it
    fixed(bits, 2), // bits per weight
  ] };
};
