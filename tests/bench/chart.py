# SPDX-License-Identifier: GPL-2.0-or-later
"""One SVG of horizontal bars: figures as ratios, with the line that they should not cross."""
from xml.sax.saxutils import escape

ROW, LEFT, WIDTH, TOP = 22, 430, 420, 60


def draw(path, title, rows):
    """rows: (label, ratio, limit or None); smaller is better."""
    rows = [r for r in rows if r[1] is not None]
    scale = WIDTH / max([1.0] + [r[1] for r in rows] + [r[2] or 0 for r in rows])
    height = TOP + ROW * len(rows) + 30
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" '
           'font-size="12">' % (LEFT + WIDTH + 90, height),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="22" font-size="15">%s</text>' % escape(title),
           '<text x="10" y="42" fill="#555">time as a ratio, shorter is better; the mark is the goal</text>']
    for number, (label, ratio, limit) in enumerate(rows):
        y = TOP + ROW * number
        good = limit is None or ratio <= limit
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (LEFT - 8, y + 14, escape(label)))
        out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
            LEFT, y + 3, ratio * scale, ROW - 7, '#4a7fb5' if good else '#c0603a'))
        out.append('<text x="%.1f" y="%d">%.3f</text>' % (LEFT + ratio * scale + 5, y + 14, ratio))
        if limit is not None:
            out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="black" stroke-width="2"/>' % (
                LEFT + limit * scale, LEFT + limit * scale, y + 1, y + ROW - 2))
    out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#999" stroke-dasharray="4"/>' % (
        LEFT + scale, LEFT + scale, TOP - 5, height - 25))
    out.append('</svg>')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join(out) + '\n')
