"""The page of a publication: one HTML file that needs nothing else, light or dark, on paper too."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from sfumato.publishing.entries import Published
from sfumato.publishing.picture import picture
from sfumato.render import between, html_table, key, shown, with_bar

__all__ = ["CONFIDENCE", "page"]

CONFIDENCE = 0.95
_ROWS = 400  # of a release that are shown, the last ones

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2230; --soft: #5b6474; --paper: #ffffff; --card: #f5f6f9;
  --line: #d9dde5; --accent: #2f5fa8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #9aa3b5; --paper: #14171f;
  --card: #1c212c; --line: #333a49; --accent: #86b0f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 60rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .4rem; padding-top: 1rem; border-top: 2px solid var(--accent); }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
p.lead { color: var(--soft); margin: 0 0 1.5rem; max-width: 46rem; }
nav { margin: 1rem 0; } nav a { margin-right: 1.1rem; }
a { color: var(--accent); }
pre { background: var(--card); border-radius: .5rem; padding: .8rem 1rem; overflow-x: auto;
  font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 1rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.rows { overflow: auto; margin: 1rem 0; max-height: 34rem; border: 1px solid var(--line);
  border-radius: .5rem; } .rows table { width: 100%; }
td, th { white-space: nowrap; vertical-align: bottom; } th > div { min-width: 9rem; margin-left: auto; }
thead th { position: sticky; top: 0; background: var(--paper); }
svg { display: block; width: 100%; height: auto; margin: 1rem 0; }
svg .band { fill: var(--accent); opacity: .2; }
svg .line { fill: none; stroke: var(--accent); stroke-width: 2; }
svg .axis { stroke: var(--line); } svg text { fill: var(--soft); font-size: 12px; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
  svg text { font-size: 20px; } }
ul { padding-left: 1.2rem; } footer { margin-top: 3rem; color: var(--soft); font-size: .9rem; }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } nav { display: none; }
  .rows { max-height: none; overflow: visible; border: 0; } thead th { position: static; }
  h2 { break-after: avoid; } tr, dl, svg { break-inside: avoid; } pre { border: 1px solid var(--line); } }
"""

_MEANING = (
    "Every number has noise, so that it says little about any one of those protected: how little at most is "
    f"what epsilon and delta say. In {CONFIDENCE:.0%} of cases the value without noise is within ± of the "
    "number that is shown (name_error in the files). The range beside it (name_low to name_high) holds, as "
    "often, the value over all rows, also those that limits leave out; where nothing is known of an end, it "
    "is open (inf).",
    "Each range holds by itself: of twenty of them, one may miss. Numbers may be below zero or break sums "
    "that the exact ones would keep; they are shown as they were drawn.",
    "A window is counted once, with the rows that were there when it was published. Rows that come later "
    "change no number that is shown.",
)


def page(title: str, releases: Sequence[Published]) -> str:
    """The page; everything that somebody wrote is escaped."""
    links = "".join(f'<a href="#{each.wanted.name}">{each.wanted.name}</a>' for each in releases)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        '<p class="lead">Figures with differential privacy: computed from data about people, with noise that '
        "protects each of them.</p>",
        f"<nav>{links}</nav>" if len(releases) > 1 else "",
        *map(_section, releases),
        "<h2>How to read the numbers</h2>",
        *(f"<p>{escape(sentence)}</p>" for sentence in _MEANING),
        '<footer>The digest of every file, and the receipts that paid for it, are in <a href="manifest.json">'
        "manifest.json</a>.</footer>",
        "</body></html>",
    ]
    return "\n".join(filter(None, parts)) + "\n"


def _section(release: Published) -> str:
    wanted = release.wanted
    head = f'<h2 id="{wanted.name}">{wanted.name}</h2>'
    facts = {
        "protects": release.protects,
        "price": release.price,
        "noise": release.method,
        "published": _windows(release),
    }
    if release.table is None:
        return f"{head}\n{_facts(facts)}\n<pre>{escape(wanted.sql.strip())}</pre>"
    links = " · ".join(
        f'<a href="{wanted.name}.{ending}">{wanted.name}.{ending}</a>' for ending in ("csv", "parquet")
    )
    facts["receipts"] = _numbers(release.receipts)
    notes = "".join(f"<li>{escape(note)}</li>" for note in release.notes)
    return "\n".join(
        filter(
            None,
            [
                head,
                _facts(facts, {"files": links}),
                picture(release),
                f'<div class="rows" tabindex="0">{_table(release, release.table.num_rows)}</div>',
                f"<h3>What was asked</h3>\n<pre>{escape(wanted.sql.strip())}</pre>",
                f"<ul>{notes}</ul>" if notes else "",
            ],
        )
    )


def _windows(release: Published) -> str:
    wanted, many = release.wanted, release.windows
    if not many:
        return f"nothing yet: the first {release.every} begins with {wanted.start}"
    of = f" of {wanted.horizon:,}" if wanted.kind == "series" else ""
    plural = "" if many == 1 and not of else "s"
    return f"{many:,}{of} {release.every}{plural}, {release.first} to {release.last} ({wanted.zone})"


def _numbers(numbers: Sequence[int]) -> str:
    """Numbers as text, runs of them as their ends: `3, 5–9`."""
    runs = list[list[int]]()
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("–".join(map(str, run)) for run in runs)


def _facts(facts: dict[str, str], marked: dict[str, str] | None = None) -> str:
    lines = [f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items()]
    lines += [f"<dt>{name}</dt><dd>{text}</dd>" for name, text in (marked or {}).items()]
    return f"<dl>{''.join(lines)}</dl>"


def _table(release: Published, many: int) -> str:
    assert release.table is not None
    names, barred = release.table.column_names, release.figures
    columns, place = dict[str, list[str]](), 0
    while place < len(names):
        name, values = names[place], release.values(place)[-_ROWS:]
        if place in barred:
            error, low, high = (release.values(place + ahead)[-_ROWS:] for ahead in (1, 2, 3))
            columns[name] = [with_bar(*pair) for pair in zip(values, error, strict=True)]
            cells = zip(low, high, values, error, strict=True)
            columns[f"{name}, range"] = [between(*cell) for cell in cells]
        else:
            columns[name] = [_key(value) if name in release.keys else shown(value) for value in values]
        place += 4 if place in barred else 1
    caption = f"The last {_ROWS:,} of {many:,} rows; all of them are in the files." if many > _ROWS else ""
    return html_table(columns, caption=caption, phrases=release.columns)


def _key(value: Any) -> str:
    return "NULL" if value is None else key(value)
