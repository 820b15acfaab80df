"""A plan as one HTML page that needs nothing else: readable on a phone, light and dark, printable."""

from __future__ import annotations

from html import escape
from pathlib import Path

from headway.errors import UsageError
from headway.plan.picture import STYLE, svg
from headway.plan.report import Plan, cells, headline, marked, sentences, shown

_STYLE = (
    """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8884}
th:nth-last-child(-n+2),td:nth-last-child(-n+2){text-align:left}
tr.standard,tr.fast{font-weight:600}
@media print{body{max-width:none;font-size:11pt}}
"""
    + STYLE
)


def page(plan: Plan) -> str:
    """The whole page."""
    curve = plan.curve
    heads = ("tokens/s per user", "per chip", "in all", f"{plan.unit} per million", "chips", "batch", "TTFT", "most time", "")
    rows = "".join(
        f'<tr class="{marked(curve, point)}">'
        + "".join(f"<td>{escape(cell)}</td>" for cell in (*cells(plan, point), marked(curve, point)))
        + "</tr>"
        for point in shown(curve, 24)
    )
    columns = "".join(f"<th>{escape(head)}</th>" for head in heads)
    told = "".join(f"<li>{escape(line)}</li>" for line in sentences(plan))
    title = escape(f"{plan.shape.name} on {plan.machine.name}")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(headline(plan))}</p><ul>{told}</ul>{svg(plan)}"
        f'<div class="wide"><table><tr>{columns}</tr>{rows}</table></div></html>\n'
    )


def write_page(plan: Plan, path: Path) -> None:
    """Raises UsageError if it can't be written."""
    try:
        path.write_text(page(plan), "utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
