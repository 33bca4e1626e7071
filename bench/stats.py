# SPDX-License-Identifier: Apache-2.0
"""Medians that say how well they are known, for tools/bench and the benchmarks in Python."""
import math
import statistics

SURE = 0.95


def median_interval(values):
    """The median, and between which two of the values the true one is with 95 % probability, whatever they are
    distributed like: the number of values below it is binomial. Of fewer than six, the least and the largest."""
    ordered = sorted(values)
    n, rank, below = len(ordered), 0, 0.0
    while True:
        below += math.exp(math.lgamma(n + 1) - math.lgamma(rank + 1) - math.lgamma(n - rank + 1) - n * math.log(2))
        if below > (1 - SURE) / 2 or rank >= (n - 1) // 2:
            break
        rank += 1
    rank = max(rank - 1, 0)
    return statistics.median(ordered), ordered[rank], ordered[n - 1 - rank]


def middle_interval(values):
    """The range that 95 % of the values are in, of many that were drawn to find it (a bootstrap)."""
    ordered = sorted(values)
    cut = int(len(ordered) * (1 - SURE) / 2)
    return ordered[cut], ordered[-1 - cut]
