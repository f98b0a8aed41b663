# SPDX-License-Identifier: GPL-2.0-only
"""Plots as SVG, written by hand: no library to install."""
import html
import math
import statistics

COLOURS = {'in-tree block': '#8c8c8c', 'our block': '#5b8fc9', 'pt': '#2e8b57', 'pt64': '#7bc49a',
           'block': '#5b8fc9', 'nop': '#c9b458'}
PALETTE = ['#4e79a7', '#f28e2b', '#59a14f', '#e15759', '#76b7b2', '#edc948', '#b07aa1', '#9c755f',
           '#ff9da7', '#bab0ac', '#86bcb6', '#d37295', '#a0cbe8']


class Picture:
    """Shapes with their origin at the top left."""

    def __init__(self, width, height, title, note=''):
        self.parts = []
        self.width, self.height = width, height
        self.text(14, 24, title, size=16, weight='bold')
        if note:
            self.text(14, 42, note, size=11, fill='#555')

    def text(self, x, y, text, size=12, anchor='start', fill='#222', weight='normal'):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
                          f'font-weight="{weight}" text-anchor="{anchor}">{html.escape(str(text))}</text>')

    def bar(self, x, y, w, h, fill, hint=''):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{h:.1f}" '
                          f'fill="{fill}"><title>{html.escape(hint)}</title></rect>')

    def line(self, points, stroke, width=1.5, dash=''):
        at = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
        self.parts.append(f'<polyline points="{at}" fill="none" stroke="{stroke}" '
                          f'stroke-width="{width}" stroke-dasharray="{dash}"/>')

    def dot(self, x, y, fill, hint=''):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{fill}">'
                          f'<title>{html.escape(hint)}</title></circle>')

    def legend(self, x, y, entries):
        for name, colour in entries:
            self.bar(x, y - 9, 11, 11, colour)
            self.text(x + 16, y, name)
            x += 34 + 7 * len(name)

    def done(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" font-family="sans-serif">\n'
                f'<rect width="100%" height="100%" fill="white"/>\n'
                + '\n'.join(self.parts) + '\n</svg>\n')


def paths(loads, floor):
    """loads: (words, proposal's count, [(path, count)])"""
    top, left, width, thick = 84, 270, 560, 14
    height = top + sum(len(bars) * thick + 20 for _, _, bars in loads) + 30
    most = max([p for _, p, _ in loads] + [n for _, _, bars in loads for _, n in bars])
    scale = width / most
    pic = Picture(left + width + 70, height, 'Guest kernel instructions per I/O',
                  'shorter is better; red: the passthrough proposed in 2024; dashed: IORING_OP_NOP')
    pic.legend(left, 66, [(n, COLOURS[n]) for n in ('in-tree block', 'our block', 'pt', 'pt64')])
    y = top
    for words, proposal, bars in loads:
        pic.text(left - 10, y + len(bars) * thick / 2 + 4, words, anchor='end')
        for name, n in bars:
            pic.bar(left, y, n * scale, thick - 2, COLOURS[name], f'{name}: {n:.0f}')
            pic.text(left + n * scale + 5, y + 10, f'{n:.0f}', size=10)
            y += thick
        at = left + proposal * scale
        pic.line([(at, y - len(bars) * thick - 4), (at, y + 4)], '#c0392b', 2)
        pic.text(at, y + 13, proposal, size=9, anchor='middle', fill='#c0392b')
        y += 20
    if floor:
        at = left + floor * scale
        pic.line([(at, top - 6), (at, height - 22)], '#555', 1, '4 3')
        pic.text(at, height - 8, f'NOP {floor:.0f}', size=10, anchor='middle', fill='#555')
    return pic.done()


def stages(load, bars):
    """bars: (name, {stage: count})"""
    names = sorted({s for _, st in bars for s in st},
                   key=lambda s: -max(st.get(s, 0) for _, st in bars))
    colour = {s: PALETTE[i % len(PALETTE)] for i, s in enumerate(names)}
    left, width, thick, top = 110, 640, 34, 110
    most = max((sum(st.values()) for _, st in bars), default=1)
    pic = Picture(left + width + 70, top + len(bars) * (thick + 12) + 10,
                  'Where the instructions of an I/O are spent', load)
    half = (len(names) + 1) // 2
    for i, part in enumerate((names[:half], names[half:])):
        pic.legend(left, 66 + 20 * i, [(s, colour[s]) for s in part])
    for i, (name, st) in enumerate(bars):
        x, y = left, top + i * (thick + 12)
        pic.text(left - 10, y + thick / 2 + 4, name, anchor='end')
        for s in names:
            w = st.get(s, 0) * width / most
            pic.bar(x, y, w, thick, colour[s], f'{s}: {st.get(s, 0):.0f}')
            if w > 24:
                pic.text(x + w / 2, y + thick / 2 + 4, f'{st[s]:.0f}', size=10, anchor='middle')
            x += w
        pic.text(x + 6, y + thick / 2 + 4, f'{sum(st.values()):.0f}', size=11)
    return pic.done()


def scaling(series):
    """series: (name, {path: [(x, count)]}); one small plot each, both axes logarithmic"""
    w, h, gap = 250, 190, 50
    pic = Picture(3 * (w + gap) + 40, 60 + 2 * (h + 70),
                  'Guest kernel instructions per I/O as one thing grows', 'both axes logarithmic')
    pic.legend(430, 42, [(n, COLOURS[n]) for n in ('in-tree block', 'our block', 'pt')])
    for i, (name, lines) in enumerate(series):
        points = [p for line in lines.values() for p in line]
        if not points:
            continue
        x0, y0 = 60 + (i % 3) * (w + gap), 70 + i // 3 * (h + 70)
        xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
        low, high = math.log(min(ys) * 0.85), math.log(max(ys) * 1.15)
        span = math.log(xs[-1] / xs[0]) or 1

        def at(x, y):
            return (x0 + math.log(x / xs[0]) / span * w,
                    y0 + h - (math.log(y) - low) / (high - low) * h)
        pic.line([(x0, y0), (x0, y0 + h), (x0 + w, y0 + h)], '#999', 1)
        for x in xs:
            pic.text(at(x, ys[0])[0], y0 + h + 15, x, size=10, anchor='middle')
        for y in sorted({min(ys), max(ys)}):
            pic.text(x0 - 5, at(xs[0], y)[1] + 4, f'{y:.0f}', size=10, anchor='end')
        pic.text(x0 + w / 2, y0 + h + 32, name, anchor='middle')
        for path, line in lines.items():
            pic.line([at(*p) for p in line], COLOURS[path], 2)
            for p in line:
                pic.dot(*at(*p), COLOURS[path], f'{path}, {name} {p[0]}: {p[1]:.0f}')
    return pic.done()


def ratios(found):
    """found: (load, path, [speed as a multiple of the in-tree block path])"""
    left, width, top, step = 330, 480, 70, 26
    most = max([max(r) for _, _, r in found] + [2.0])
    scale = width / most
    pic = Picture(left + width + 90, top + len(found) * step + 40,
                  'Speed as a multiple of the in-tree block path',
                  'dot: median; line: range; wall-clock under emulation: to be read with care')
    bottom = top + len(found) * step
    for tick in range(0, int(most * 2) + 1):
        x = left + tick / 2 * scale
        pic.line([(x, top - 10), (x, bottom)], '#555' if tick == 2 else '#ddd', 1)
        pic.text(x, bottom + 16, f'{tick / 2:.1f}', size=10, anchor='middle')
    for i, (load, path, r) in enumerate(found):
        y = top + i * step + 6
        middle = statistics.median(r)
        pic.text(left - 12, y + 4, f'{path}: {load}', anchor='end')
        pic.line([(left + min(r) * scale, y), (left + max(r) * scale, y)], COLOURS[path], 3)
        pic.dot(left + middle * scale, y, COLOURS[path], f'{middle:.2f}')
        pic.text(left + max(r) * scale + 8, y + 4, f'{middle:.2f} (n={len(r)})', size=10)
    return pic.done()
