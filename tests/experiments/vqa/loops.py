"""The modules of BAN written out with loops: slow, obvious, and what the fast ones are compared with."""

from __future__ import annotations

import itertools

import torch


def monotone(weight, x):
    """f(x) with slopes proportional to |w| on equal pieces of [0, 1]."""
    weight = weight.detach()
    pieces, total, value = len(weight), float(weight.abs().sum()), 0.0
    for k in range(pieces):
        covered = min(max(x * pieces - k, 0.0), 1.0)
        value += covered * abs(float(weight[k])) / total
    return value


def iou(one, other):
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0) * max(height, 0)
    areas = [max(b[2] - b[0], 0) * max(b[3] - b[1], 0) for b in (one, other)]
    return shared / (sum(areas) - shared + 1e-12)


def count(weights, logits, boxes, objects):
    """Zhang et al. 2018, equations 1 to 9, of one set: the eight functions by their weights."""
    f1, f2, f3, f4, f5, f6, f7, f8 = ((lambda x, w=w: monotone(w, x)) for w in weights)
    best = sorted(range(len(logits)), key=lambda i: -logits[i])[:objects]
    a = [float(torch.tensor(logits[i], dtype=torch.float64).sigmoid()) for i in best]
    n = len(a)
    d = [[1 - iou(boxes[i], boxes[j]) for j in best] for i in best]
    x = [[f4(a[i] * a[j]) * f5(d[i][j]) for j in range(n)] for i in range(n)]
    share = []
    for i in range(n):
        similar = 0.0
        for j in range(n):
            same = f3(1 - abs(a[i] - a[j]))
            for k in range(n):
                same *= f3(1 - abs(x[i][k] - x[j][k]))
            similar += same
        share.append(1 / similar)
    total = 0.0
    for i, j in itertools.product(range(n), repeat=2):
        total += share[i] * share[j] * f1(a[i] * a[j]) * f2(d[i][j])
    for i in range(n):
        total += share[i] * f1(a[i] ** 2)
    counted = min(total**0.5, objects)
    certain_a = sum(abs(f6(v) - 0.5) for v in a) / n
    certain_d = sum(abs(f7(v) - 0.5) for row in d for v in row) / n**2
    confidence = f8(min(certain_a + certain_d, 1.0))
    whole = int(counted)
    one_hot = [0.0] * (objects + 1)
    one_hot[whole] += 1 - (counted - whole)
    if whole < objects:
        one_hot[whole + 1] += counted - whole
    return [value * confidence for value in one_hot]


def attention_logits(x, y, weight, bias):
    """logit[g][i][j] = Σ_d p_g[d] x[i][d] y[j][d] + b_g, with x and y already in the joint space."""
    glimpses, width = weight.shape
    result = torch.zeros(glimpses, len(x), len(y), dtype=x.dtype)
    for g, i, j in itertools.product(range(glimpses), range(len(x)), range(len(y))):
        result[g, i, j] = sum(weight[g, d] * x[i, d] * y[j, d] for d in range(width)) + bias[g]
    return result


def pooled(x, y, attention):
    """f[d] = Σ_ij A[i][j] x[i][d] y[j][d]."""
    result = torch.zeros(x.shape[1], dtype=x.dtype)
    for d, i, j in itertools.product(range(x.shape[1]), range(len(x)), range(len(y))):
        result[d] += attention[i, j] * x[i, d] * y[j, d]
    return result
