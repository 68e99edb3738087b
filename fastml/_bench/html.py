"""The report as one HTML page: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .contest import Contest
from .report import duration, machine, remarks

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #66727f; --line: #dfe4ea;
  --paper: #fff; --card: #f7f9fb; --fastml: #0b7a75; --peer: #a9b7c6; --spread: #1c273355; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #93a1af; --line: #2c3742;
  --paper: #12181e; --card: #1a2229; --fastml: #2cc4b8; --peer: #51616f; --spread: #e6ebf066; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.05rem; margin: 0 0 .75rem; }
h2 span { font-weight: 400; color: var(--soft); }
p, dl { color: var(--soft); } dl { display: grid; grid-template-columns: max-content 1fr;
  gap: 0 1rem; margin: 1rem 0; } dt { font-weight: 600; } dd { margin: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.25rem; margin: 1.25rem 0; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .figure { fill: var(--soft); } .bar { fill: var(--peer); } .bar.fastml { fill: var(--fastml); }
.spread { stroke: var(--spread); stroke-width: 2; }
table { border-collapse: collapse; width: 100%; margin-top: .75rem; font-size: .9rem; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: .2rem .75rem .2rem 0; border-top: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.fastml td:first-child { font-weight: 600; color: var(--fastml); }
"""

LABEL, BAR, ROW = 150, 500, 30  # of a chart 760 wide


def page(contests: Sequence[Contest]) -> str:
    facts = {**machine(), "threads": contests[0].threads}
    for contest in contests:
        for contestant, entry in zip(contest.case.contestants, contest.entries, strict=True):
            if entry.seconds:
                facts[contestant.distribution] = entry.version
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>fastml bench</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>fastml bench</h1>
<p>Every contestant had a process of its own, the same data and the same number of threads, and
worked when its turn came. A bar is the best time; the line beyond it ends at the slowest turn.
Shorter is better.</p>
<dl>{listed}</dl>
{"".join(map(_section, contests))}
</body></html>
"""


def _section(contest: Contest) -> str:
    name, _, params = str(contest.case).partition(" ")
    absent = "".join(
        f"<p>{escape(entry.name)}: {escape(entry.failure)}</p>"
        for entry in contest.entries
        if entry.failure
    )
    title = f"<h2>{escape(name)} <span>{escape(params)}</span></h2>"
    if not contest.finished:
        return f"<section>{title}{absent}</section>"
    return f"<section>{title}{_chart(contest)}{_table(contest)}{absent}</section>"


def _chart(contest: Contest) -> str:
    entries = sorted(contest.finished, key=lambda entry: entry.best)
    # The slowest best sets the scale, and lines of slow turns are cut at the end of it.
    scale = BAR / entries[-1].best
    rows = []
    for i, entry in enumerate(entries):
        y, length = i * ROW, max(2.0, entry.best * scale)
        slowest = min(BAR, max(entry.seconds) * scale)
        ours = " fastml" if entry.name == "fastml" else ""
        rows.append(
            f'<text x="0" y="{y + 19}">{escape(entry.name)}</text>'
            f'<line class="spread" x1="{LABEL + length:.1f}" x2="{LABEL + slowest:.1f}" '
            f'y1="{y + 14}" y2="{y + 14}"/>'
            f'<rect class="bar{ours}" x="{LABEL}" y="{y + 4}" width="{length:.1f}" height="20" '
            f'rx="3"/><text class="figure" x="{LABEL + slowest + 8:.1f}" y="{y + 19}">'
            f"{duration(entry.best)}</text>"
        )
    height = ROW * len(entries)
    label = f"Times of {contest.case}"
    return (
        f'<svg viewBox="0 0 760 {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(rows)}</svg>"
    )


def _table(contest: Contest) -> str:
    reference = contest.entries[0]
    head = (
        f'<tr><th></th><th class="number">best</th><th class="number">{escape(reference.name)} = 1'
        f'</th><th class="number">{escape(contest.case.measure)}</th><th></th></tr>'
    )
    rows = []
    for entry in sorted(contest.finished, key=lambda entry: entry.best):
        speed = f"{contest.ratio(entry):.2f} ×" if reference.seconds else ""
        figures = (duration(entry.best), speed, f"{entry.quality:.6g}")
        cells = "".join(f'<td class="number">{figure}</td>' for figure in figures)
        ours = ' class="fastml"' if entry.name == "fastml" else ""
        remark = escape(remarks(contest, entry))
        rows.append(f"<tr{ours}><td>{escape(entry.name)}</td>{cells}<td>{remark}</td></tr>")
    return f"<table>{head}{''.join(rows)}</table>"
