// The decay mask with its chunks, and what is left of each token when the last one reads: decay_and_chunks in
// figures/state_space.py.
pspinLive.forms.decay ??= ({ decay, chunk, T }, spec) => {
  const { purple } = spec.colours, sum = list => list.reduce((a, b) => a + b, 0);
  const left = Array.from({ length: T }, (_, j) => decay ** (T - 1 - j));
  const start = Math.floor((T - 1) / chunk) * chunk; // first token of the last chunk
  const lengths = Array.from({ length: Math.ceil(T / chunk) }, (_, i) => Math.min(chunk, T - chunk * i));

  const canvas = document.createElement("canvas"), map = spec.map;
  canvas.width = canvas.height = T;
  const context = canvas.getContext("2d"), pixels = context.createImageData(T, T);
  for (let c = 0; c < T; c++) for (let j = 0; j <= c; j++) {
    const shades = Math.floor(c / chunk) === Math.floor(j / chunk) ? map.pair : map.state;
    const colour = shades[Math.round(left[T - 1 - c + j] * (shades.length - 1))];
    pixels.data.set([...colour, 255], 4 * (c * T + j));
  }
  context.putImageData(pixels, 0, 0);

  const few = [1, T >> 1, T], edge = [0.5, T + 0.5], lines = [], texts = [];
  const panels = [
    { ...spec.panels[0], xlim: edge, ylim: [T + 0.5, 0.5], xticks: few, yticks: few, image: canvas.toDataURL() },
    { ...spec.panels[1], xlim: edge, xticks: few },
  ];
  if (chunk < T) {
    const squares = lengths.map((length, i) => [chunk * i + 0.5, chunk * i + length + 0.5]);
    const x = squares.flatMap(([a, b]) => [a, b, b, a, a, NaN]), y = squares.flatMap(([a, b]) => [a, a, b, b, a, NaN]);
    lines.push({ panel: 0, x, y, colour: "black", width: 1.2 });
  }
  const parts = [["■ from the state", 0, start, purple, 1], ["■ as a pair", start, T, spec.grey, 0.9]];
  for (const [text, a, b, colour, height] of parts) {
    if (b <= a) continue;
    const part = left.slice(a, b); // stairs
    const x = [a + 0.5, ...part.flatMap((_, i) => [a + i + 0.5, a + i + 1.5]), b + 0.5];
    lines.push({ panel: 1, x, y: [0, ...part.flatMap(v => [v, v]), 0], colour, fill: true });
    texts.push({ panel: 1, x: 0.5 + 0.03 * T, y: height, text, colour, anchor: "start" });
  }
  const { general } = pspinLive, total = sum(left), commas = n => n.toLocaleString("en-US");
  const share = `${general((100 * sum(left.slice(0, start))) / total)}%`;
  const pairs = commas(sum(lengths.map(n => (n * (n + 1)) / 2))), all = commas((T * (T + 1)) / 2);
  panels[0].title = `${pairs} of ${all} pairs`;
  panels[1].title = `Last token: ${share} from the state`;
  return { panels, lines, texts, numbers: [
    decay >= 1 ? "for ever" : general(Math.log(0.5) / Math.log(decay)), // half-life, tokens
    total, // sum of fractions left
    share, // of that sum, from the state
    lengths.length, // chunks
    pairs, // pairs used
    all, // of all pairs
  ] };
};
