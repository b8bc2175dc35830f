"""Published series: one question about each step of time, paid for once, its points appended as steps end.

```
Session.stream(text, horizon=…, epsilon=…) ──► Stream
   │ steps_of: which key is time, and the calendar of its steps      calendar
   │ quote:    the price of all points, and the noise that fits      pricing
   ▼ advance
 debit(points=horizon) ──► for each step that has closed: read ──► Course.release ──► record ──► shown
                                              │           the same noise if it is read again     points
                                              └ groups that are not public: which join         finding
```
"""

from __future__ import annotations

from sfumato.session.series.pricing import Of
from sfumato.session.series.stream import Stream, opened

__all__ = ["Of", "Stream", "opened"]
