#!/usr/bin/env python3
"""draw_trace.py TRACE.json PICTURE.svg [STEP] - draws a profiler's trace: the host's ranges and operations above, the
kernels of each stream below, for one step (by default the last one), or for everything if there are no steps."""

import json
import sys
from html import escape

WIDTH, LEFT, ROW, GAP = 1200, 96, 22, 14
COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#edc948", "#9c755f", "#ff9da7", "#2f4b7c"]


def span_of(events, wanted):
    """The time range drawn for the host, in microseconds: a step's, or everything if there are no steps."""
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    if not steps:
        return min(e["ts"] for e in events), max(e["ts"] + e["dur"] for e in events)
    name = f"ProfilerStep#{wanted}" if wanted else steps[-1]["name"]
    step = next((e for e in steps if e["name"] == name), None)
    if step is None:
        sys.exit(f"draw_trace.py: there is no {name}; there are {', '.join(e['name'] for e in steps)}")
    return step["ts"], step["ts"] + step["dur"]


def rows_of(events):
    """The events of one track with their nesting depth."""
    open_ends, placed = [], []
    for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while open_ends and open_ends[-1] <= e["ts"] + 0.002:
            open_ends.pop()
        placed.append((len(open_ends), e))
        open_ends.append(e["ts"] + e["dur"])
    return placed


class Picture:
    def __init__(self, ranges):
        self.ranges, self.parts, self.colours, self.y = ranges, [], {}, GAP

    def colour(self, event):
        if event["cat"] == "user_annotation":
            return "#d9dde3"
        name = event["args"].get("enqueued by", event["name"]).replace("_backward", "")
        if name in self.ranges:
            return "#9aa3ad"
        return self.colours.setdefault(name, COLOURS[len(self.colours) % len(COLOURS)])

    def text(self, x, y, content, anchor="start", colour="#333"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
                          f'{escape(content)}</text>')

    def band(self, title, events, start, end):
        """A group of rows with its own axis."""
        scale = (WIDTH - LEFT - GAP) / (end - start)
        placed = rows_of(events)
        for line, words in enumerate(title):
            self.text(LEFT - 10, self.y + 15 + 15 * line, words, "end")
        for depth, e in placed:
            x, width = LEFT + (e["ts"] - start) * scale, max(e["dur"] * scale, 0.5)
            y = self.y + depth * ROW
            label = f'{e["name"]}: {e["dur"]:.0f} us'
            if "GFLOP/s" in e["args"]:
                label += (f', {e["args"]["GFLOP/s"]:.0f} GFLOP/s, '
                          f'{100 * e["args"].get("share of peak", 0):.0f} % of peak')
            self.parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 2}" rx="2" '
                              f'fill="{self.colour(e)}"><title>{escape(label)}</title></rect>')
            if width > 7 * len(e["name"]) + 6:
                self.text(x + 5, y + 14, e["name"], colour="#333" if e["cat"] == "user_annotation" else "#fff")
        self.y += (max((d for d, _ in placed), default=0) + 1) * ROW + 4
        self.axis(start, end, scale)

    def axis(self, start, end, scale):
        step = next(s for s in (10 ** k * m for k in range(-1, 9) for m in (1, 2, 5)) if (end - start) / s <= 10)
        self.parts.append(f'<path d="M{LEFT} {self.y}H{WIDTH - GAP}" stroke="#999"/>')
        tick = 0.0
        while tick <= end - start:
            x = LEFT + tick * scale
            self.parts.append(f'<path d="M{x:.1f} {self.y}v4" stroke="#999"/>')
            shown = f"{tick / 1000:g} ms" if end - start >= 2000 else f"{tick:g} us"
            self.text(x, self.y + 17, shown, "middle", "#777")
            tick += step
        self.y += 20 + GAP

    def legend(self):
        x = LEFT
        for name, colour in self.colours.items():
            width = 24 + 7 * len(name)
            if x + width > WIDTH - GAP:
                x, self.y = LEFT, self.y + 20
            self.parts.append(f'<rect x="{x}" y="{self.y}" width="12" height="12" rx="2" fill="{colour}"/>')
            self.text(x + 17, self.y + 11, name)
            x += width + 10
        self.y += 12 + GAP

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.y}" '
                       f'font-family="sans-serif" font-size="12">\n'
                       f'<rect width="{WIDTH}" height="{self.y}" fill="#fff"/>\n')
            file.write("\n".join(self.parts))
            file.write("\n</svg>\n")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    devices = {e["pid"]: e["args"]["name"] for e in trace if e["name"] == "process_name"}
    events = [e for e in trace if e["ph"] == "X"]
    for e in events:
        e.setdefault("args", {})
    start, end = span_of(events, sys.argv[3] if len(sys.argv) == 4 else None)
    host = [e for e in events if e["pid"] == 0 and e["tid"] != 0 and start <= e["ts"] < end]
    arrows = {e["id"] for e in trace if e["ph"] == "s" and start <= e["ts"] < end}
    targets = {(e["pid"], e["tid"], e["ts"]) for e in trace if e["ph"] == "f" and e["id"] in arrows}
    commands = [e for e in events if e["pid"] > 0 and (e["pid"], e["tid"], e["ts"]) in targets]
    picture = Picture({e["name"] for e in events if e["cat"] == "user_annotation"})
    for track in sorted({(e["pid"], e["tid"]) for e in host}):
        mine = [e for e in host if (e["pid"], e["tid"]) == track]
        picture.band(["host", names[track]], mine, start, end)
    for track in sorted({(e["pid"], e["tid"]) for e in commands}):
        mine = [e for e in commands if (e["pid"], e["tid"]) == track]
        picture.band([devices[track[0]].split(" ")[0], names[track]], mine, min(e["ts"] for e in mine),
                     max(e["ts"] + e["dur"] for e in mine))
    picture.legend()
    picture.write(sys.argv[2])


if __name__ == "__main__":
    main()
