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

from typing import TYPE_CHECKING

from sfumato._lazy import lazy

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
    from sfumato.book.synthetic import gen_samples, range_query_synth

# Loaded on first use.
_HOMES = {
    "anonymity": "generalize isKAnonymized",
    "clipping": "auto_avg naive_select_b",
    "learning": (
        "L2_clip accuracy avg_grad descent_noise gradient gradient_descent gradient_sum loss "
        "noisy_gradient_descent predict"
    ),
    "local_sensitivity": "dist_to_high_ls gs_avg ls_at_distance ptr_avg saa_avg_age",
    "mechanisms": (
        "adv_comp avg_attack gaussian_mech gaussian_mech_RDP_vec gaussian_mech_vec "
        "gaussian_mech_zCDP_vec laplace_mech laplace_mech_vec pct_error seq_comp"
    ),
    "prices": "price",
    "queries": "age_range_query age_sum_query create_age_range_query create_query range_query",
    "selection": (
        "above_threshold above_threshold_fail_signal exponential naive_above_threshold range_query_svt "
        "report_noisy_max score sparse"
    ),
    "survey": "aggregate debias_sales encode perturb perturb_bit rand_resp_sales unary_epsilon",
    "synthetic": "gen_samples range_query_synth",
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
    "gen_samples",
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
    "range_query_synth",
    "report_noisy_max",
    "saa_avg_age",
    "score",
    "seq_comp",
    "sparse",
    "unary_epsilon",
]

__getattr__, __dir__ = lazy(globals(), _HOMES)
