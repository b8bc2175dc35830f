"""The functions of *Programming Differential Privacy* (Near and Abuah), with its names, safe and vectorised.

```python
from sfumato import book

book.laplace_mech(1000, 1, 0.1)                    # as in chapter 3, with exact noise
book.auto_avg([31, 45, 62] * 1000, epsilon=1)      # as in chapter 10, in one pass
book.price("auto_avg", epsilon=1).epsilon(delta=0) # what that cost
```

Arguments are those of the originals, plus the data where they read a global. Each docstring names the trap
that the original falls into, and what one call costs in all.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

# One line a name, each in its alphabetical place.
if TYPE_CHECKING:
    from sfumato.book.anonymity import generalize, isKAnonymized
    from sfumato.book.clipping import auto_avg, naive_select_b
    from sfumato.book.learning import (
        L2_clip,
        accuracy,
        avg_grad,
        descent_noise,
        gradient,
        gradient_descent,
        gradient_sum,
        loss,
        noisy_gradient_descent,
        predict,
    )
    from sfumato.book.local_sensitivity import dist_to_high_ls, gs_avg, ls_at_distance, ptr_avg, saa_avg_age
    from sfumato.book.mechanisms import (
        adv_comp,
        avg_attack,
        gaussian_mech,
        gaussian_mech_RDP_vec,
        gaussian_mech_vec,
        gaussian_mech_zCDP_vec,
        laplace_mech,
        laplace_mech_vec,
        pct_error,
        seq_comp,
    )
    from sfumato.book.prices import price
    from sfumato.book.queries import (
        age_range_query,
        age_sum_query,
        create_age_range_query,
        create_query,
        range_query,
    )
    from sfumato.book.selection import (
        above_threshold,
        above_threshold_fail_signal,
        exponential,
        naive_above_threshold,
        range_query_svt,
        report_noisy_max,
        score,
        sparse,
    )
    from sfumato.book.survey import (
        aggregate,
        debias_sales,
        encode,
        perturb,
        perturb_bit,
        rand_resp_sales,
        unary_epsilon,
    )

# Loaded on first use.
_HOMES = {
    "L2_clip": "learning",
    "above_threshold": "selection",
    "above_threshold_fail_signal": "selection",
    "accuracy": "learning",
    "adv_comp": "mechanisms",
    "age_range_query": "queries",
    "age_sum_query": "queries",
    "aggregate": "survey",
    "auto_avg": "clipping",
    "avg_attack": "mechanisms",
    "avg_grad": "learning",
    "create_age_range_query": "queries",
    "create_query": "queries",
    "debias_sales": "survey",
    "descent_noise": "learning",
    "dist_to_high_ls": "local_sensitivity",
    "encode": "survey",
    "exponential": "selection",
    "gaussian_mech": "mechanisms",
    "gaussian_mech_RDP_vec": "mechanisms",
    "gaussian_mech_vec": "mechanisms",
    "gaussian_mech_zCDP_vec": "mechanisms",
    "generalize": "anonymity",
    "gradient": "learning",
    "gradient_descent": "learning",
    "gradient_sum": "learning",
    "gs_avg": "local_sensitivity",
    "isKAnonymized": "anonymity",
    "laplace_mech": "mechanisms",
    "laplace_mech_vec": "mechanisms",
    "loss": "learning",
    "ls_at_distance": "local_sensitivity",
    "naive_above_threshold": "selection",
    "naive_select_b": "clipping",
    "noisy_gradient_descent": "learning",
    "pct_error": "mechanisms",
    "perturb": "survey",
    "perturb_bit": "survey",
    "predict": "learning",
    "price": "prices",
    "ptr_avg": "local_sensitivity",
    "rand_resp_sales": "survey",
    "range_query": "queries",
    "range_query_svt": "selection",
    "report_noisy_max": "selection",
    "saa_avg_age": "local_sensitivity",
    "score": "selection",
    "seq_comp": "mechanisms",
    "sparse": "selection",
    "unary_epsilon": "survey",
}

__all__ = [
    "L2_clip",
    "above_threshold",
    "above_threshold_fail_signal",
    "accuracy",
    "adv_comp",
    "age_range_query",
    "age_sum_query",
    "aggregate",
    "auto_avg",
    "avg_attack",
    "avg_grad",
    "create_age_range_query",
    "create_query",
    "debias_sales",
    "descent_noise",
    "dist_to_high_ls",
    "encode",
    "exponential",
    "gaussian_mech",
    "gaussian_mech_RDP_vec",
    "gaussian_mech_vec",
    "gaussian_mech_zCDP_vec",
    "generalize",
    "gradient",
    "gradient_descent",
    "gradient_sum",
    "gs_avg",
    "isKAnonymized",
    "laplace_mech",
    "laplace_mech_vec",
    "loss",
    "ls_at_distance",
    "naive_above_threshold",
    "naive_select_b",
    "noisy_gradient_descent",
    "pct_error",
    "perturb",
    "perturb_bit",
    "predict",
    "price",
    "ptr_avg",
    "rand_resp_sales",
    "range_query",
    "range_query_svt",
    "report_noisy_max",
    "saa_avg_age",
    "score",
    "seq_comp",
    "sparse",
    "unary_epsilon",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
