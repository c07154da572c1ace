// On a phone an equation begins at the left: centred beside its name, it would need the name's width twice.
if (innerWidth < 600) window.MathJax.svg = {displayAlign: "left"};
