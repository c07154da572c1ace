// Two spins: phase portrait and residuals. The formulas of fixed_points.py and explore_attractor.py; gates
// have no couplings here, so they are constants. Vectors are [a, b], matrices [[a, b], [c, d]].
pspinLive.forms.twoSpins ??= ({ kind, K, gamma, w: strength }, spec) => {
  const { shown: SHOWN, limit, settled: SETTLED, grid } = spec;
  const coupling = spec.kinds[kind].map(row => row.map(code => code * strength * gamma));
  const open = spec.drive.slice(2).map(g => 1 / (1 + Math.exp(-g))); // sigmoid(G)
  const sub = (a, b) => [a[0] - b[0], a[1] - b[1]];
  const largest = a => Math.max(Math.abs(a[0]), Math.abs(a[1])); // NaN stays NaN
  const times = (M, a) => M.map(row => row[0] * a[0] + row[1] * a[1]);
  const oneMinus = M => [[1 - M[0][0], -M[0][1]], [-M[1][0], 1 - M[1][1]]];
  const solve = ([[a, b], [c, d]], [p, q]) => [(p * d - b * q) / (a * d - b * c), (a * q - c * p) / (a * d - b * c)];
  const distinct = (points, gap) =>
    points.reduce((rest, p) => (rest.every(q => largest(sub(p, q)) > gap) ? [...rest, p] : rest), []);

  const tanhs = (y, W) => times(W, y).map((field, i) => Math.tanh(spec.drive[i] + field));
  const step = (y, W = coupling) => tanhs(y, W).map((t, i) => t * open[i]);
  const jacobian = (y, W = coupling) => tanhs(y, W).map((t, i) => W[i].map(w => (1 - t * t) * open[i] * w)); // phi_u W
  const radius = J => {
    const half = (J[0][0] + J[1][1]) / 2, det = J[0][0] * J[1][1] - J[0][1] * J[1][0], gap = half * half - det;
    return gap < 0 ? Math.sqrt(det) : Math.abs(half) + Math.sqrt(gap);
  };
  const newton = (y, W = coupling) => {
    const move = solve(oneMinus(jacobian(y, W)), sub(step(y, W), y));
    return [y[0] + move[0], y[1] + move[1]];
  };

  // From the layer's own start and from the corners until all settle or `limit` steps have passed
  const start = step([0, 0]), path = [start];
  let states = [start, ...spec.corners], settled = [];
  for (let k = 0; k < limit; k++) {
    const next = states.map(y => step(y));
    settled = next.map((y, i) => largest(sub(y, states[i])) < SETTLED);
    states = next;
    if (k < SHOWN) path.push(states[0]);
    if (k + 1 >= SHOWN && settled.every(yes => yes)) break;
  }
  let end = newton(newton(states[0]));
  if (!settled[0]) { // follow: from gamma = 0, where spin(z) is the fixed point, to gamma as it is
    end = start;
    for (let stage = 1; stage <= spec.stages; stage++) {
      const part = coupling.map(row => row.map(w => w * (stage / spec.stages)));
      for (let i = 0; i < (stage < spec.stages ? 2 : 6); i++) end = newton(end, part);
    }
    if (!(largest(sub(step(end), end)) < SETTLED)) end = [NaN, NaN];
  }
  const residual = path.slice(1).map((y, k) => Math.hypot(...sub(y, path[k])) / Math.max(Math.hypot(...y), 1e-30));

  // All fixed points that Newton's method finds from a grid
  const axis = Array.from({ length: grid }, (_, i) => -1 + (2 * i) / (grid - 1));
  const found = axis.flatMap(a => axis.map(b => {
    let y = [a, b];
    for (let i = 0; i < 25; i++) y = newton(y).map(v => Math.min(Math.max(v, -1.5), 1.5));
    return y;
  })).filter(y => largest(sub(step(y), y)) < 1e-9);
  const points = distinct(found, 1e-3).map(y => ({ y, attracts: radius(jacobian(y)) < 1 }));

  // The picture
  const { blue, orange, green, purple, sky } = spec.colours, lines = [], texts = [];
  const draw = (panel, x, y, colour, how = {}) => lines.push({ panel, x, y, colour, ...how });
  const log = values => values.map(v => (v > 1e-9 ? Math.log10(v) : NaN));
  const count = n => Array.from({ length: n }, (_, i) => i);
  const ticks = count(spec.cells).map(i => -1 + (2 * i) / (spec.cells - 1));
  const moves = ticks.map(b => ticks.map(a => sub(step([a, b]), [a, b])));
  [sky, orange].forEach((colour, spin) => { // nullclines: where a cell's edges change sign, a segment crosses it
    const x = [], y = [];
    for (let r = 0; r + 1 < ticks.length; r++) for (let c = 0; c + 1 < ticks.length; c++) {
      const corners = [[r, c], [r, c + 1], [r + 1, c + 1], [r + 1, c]], ends = [];
      corners.forEach(([r1, c1], i) => {
        const [r2, c2] = corners[(i + 1) % 4], v1 = moves[r1][c1][spin], v2 = moves[r2][c2][spin];
        if (v1 < 0 === v2 < 0) return;
        const part = v1 / (v1 - v2);
        ends.push([ticks[c1] + part * (ticks[c2] - ticks[c1]), ticks[r1] + part * (ticks[r2] - ticks[r1])]);
      });
      if (ends.length) x.push(...ends.map(e => e[0]), NaN), y.push(...ends.map(e => e[1]), NaN);
    }
    draw(0, x, y, colour, { width: 1.8 });
  });
  const follow = y => count(K).reduce(way => [...way, step(way.at(-1))], [y]);
  const draws = (way, colour, how) => draw(0, way.map(y => y[0]), way.map(y => y[1]), colour, how);
  for (const way of spec.corners.map(follow)) { // early steps are strong, later ones faint
    draws(way, purple, { width: 1, opacity: 0.35 });
    draws(way.slice(0, spec.strong + 1), purple, { width: 1.5 });
    draws(way.slice(0, 1), purple, { width: 0, dot: 2.6 });
  }
  draws(follow(start), green, { dot: 1.8, width: 1.5 });
  points.forEach(({ y, attracts }) => draws([y], "black", { width: 0, dot: 3.5, filled: attracts }));
  draw(1, count(SHOWN).map(k => k + 1), log(residual), blue, { width: 1.2 });
  draw(1, [K, K], [-9, 1], spec.grey, { width: 1, dashes: true });
  texts.push({ panel: 1, x: K < SHOWN ? K + 0.8 : K - 0.8, y: 1, text: "K", colour: spec.grey });

  const [[a, b], [c, d]] = coupling, rho = radius(jacobian(end));
  return { panels: spec.panels, lines, texts, numbers: [
    `${points.length}, ${points.filter(p => p.attracts).length} attract`, // fixed points
    Number.isFinite(rho) ? rho : "not found", // spectral radius
    (Math.hypot(a + d, b - c) + Math.hypot(a - d, b + c)) / 2, // Lipschitz bound: the largest singular value
    K ? residual[K - 1] : "no step", // residual at K
    settled[0] ? "yes" : "no", // layer settles
    `${settled.filter(yes => yes).length} of ${settled.length}`, // paths that settle
  ] };
};
