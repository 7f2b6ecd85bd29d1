"""The paper's numbers: its tables of the mosaic and classification experiments, sides 2 to 5, and of VQA v2."""

from __future__ import annotations

Rows = dict[str, dict[str, tuple[float, float, float, float]]]  # model -> dataset -> sides 2, 3, 4, 5

MOSAIC_ERROR: Rows = {
    "lin-assign": {
        "mnist": (0.00, 0.00, 0.33, 0.08),
        "cifar10": (0.37, 0.49, 1.34, 1.12),
        "tiny-imagenet": (0.60, 1.10, 1.33, 1.44),
    },
    "po-u": {
        "mnist": (0.00, 0.02, 0.46, 0.45),
        "cifar10": (0.11, 0.44, 1.23, 1.26),
        "tiny-imagenet": (0.14, 0.69, 1.20, 1.31),
    },
    "po-la": {
        "mnist": (0.00, 0.00, 0.07, 0.01),
        "cifar10": (0.18, 0.16, 1.07, 0.70),
        "tiny-imagenet": (0.16, 0.62, 1.13, 1.32),
    },
}

MOSAIC_ACCURACY: Rows = {
    "lin-assign": {
        "mnist": (99.7, 66.9, 0.8, 0.0),
        "cifar10": (68.8, 30.3, 0.0, 0.0),
        "tiny-imagenet": (47.7, 4.0, 0.0, 0.0),
    },
    "po-u": {
        "mnist": (100.0, 65.9, 0.2, 0.0),
        "cifar10": (86.2, 34.4, 0.0, 0.0),
        "tiny-imagenet": (85.9, 19.2, 0.1, 0.0),
    },
    "po-la": {
        "mnist": (99.9, 73.1, 1.8, 0.0),
        "cifar10": (87.3, 66.0, 0.6, 0.3),
        "tiny-imagenet": (84.2, 28.6, 0.1, 0.0),
    },
}

# model -> mean and sample standard deviation over ten runs on VQA v2: overall, yes/no, number, other
VQA: dict[str, tuple[tuple[float, float], ...]] = {
    "ban": ((65.96, 0.16), (83.34, 0.09), (49.24, 0.56), (57.17, 0.14)),
    "ban-lstm": ((66.06, 0.13), (83.29, 0.13), (49.64, 0.37), (57.30, 0.13)),
    "ban-po-u": ((66.33, 0.09), (83.50, 0.10), (50.42, 0.46), (57.48, 0.10)),
}
