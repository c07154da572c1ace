// A memory of one number over four tokens: explore_memory.py.
pspinLive.forms.memory ??= ({ decay, v1, v2, v3, v4 }, spec) => {
  const lines = [], texts = [], numbers = [], { kept: pink, added: green } = spec.bars;
  const write = number => pspinLive.general(number, 4);
  let h = 0;
  [v1, v2, v3, v4].forEach((value, i) => {
    const kept = decay * h, x = [i + 1, i + 1];
    h = kept + value;
    lines.push({ panel: 0, x, y: [0, kept], colour: pink, width: spec.width });
    lines.push({ panel: 0, x, y: [kept, h], colour: green, width: spec.width });
    texts.push({ panel: 0, x: i + 1, y: h + 0.45, text: write(h), colour: "black" });
    numbers.push(write(h));
  });
  spec.legend.forEach(([text, colour, x, y]) => texts.push({ panel: 0, x, y, text, colour }));
  const panels = [{ ...spec.panels[0], title: `h after token 4: ${write(h)}` }];
  return { panels, lines, texts, numbers };
};
