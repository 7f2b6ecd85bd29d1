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

CLASSIFY_ACCURACY: Rows = {
    "max": {
        "mnist": (99.5, 99.5, 99.5, 99.3),
        "cifar10": (81.0, 81.0, 81.9, 80.2),
        "tiny-imagenet": (31.2, 33.4, 31.2, 33.5),
    },
    "min": {
        "mnist": (36.6, 22.5, 17.1, 14.6),
        "cifar10": (36.5, 26.4, 22.9, 18.0),
        "tiny-imagenet": (11.4, 7.8, 3.5, 2.7),
    },
    "lin-assign": {
        "mnist": (99.4, 99.2, 86.0, 84.2),
        "cifar10": (64.6, 33.8, 33.4, 32.5),
        "tiny-imagenet": (13.1, 5.8, 5.3, 3.3),
    },
    "po-u": {
        "mnist": (99.3, 98.7, 67.9, 69.2),
        "cifar10": (70.8, 41.6, 33.3, 29.7),
        "tiny-imagenet": (24.6, 12.1, 7.3, 5.1),
    },
    "po-la": {
        "mnist": (99.3, 99.4, 93.3, 89.8),
        "cifar10": (71.6, 40.7, 34.2, 32.3),
        "tiny-imagenet": (23.4, 10.9, 6.3, 4.4),
    },
}

CLASSIFY_ERROR: Rows = {
    "max": {
        "mnist": (0.00, 0.00, 0.00, 0.00),
        "cifar10": (0.00, 0.00, 0.00, 0.00),
        "tiny-imagenet": (0.00, 0.00, 0.00, 0.00),
    },
    "min": {
        "mnist": (1.59, 1.63, 1.91, 1.72),
        "cifar10": (1.76, 1.91, 2.11, 2.01),
        "tiny-imagenet": (1.48, 1.72, 1.79, 1.83),
    },
    "lin-assign": {
        "mnist": (0.02, 0.05, 0.73, 1.11),
        "cifar10": (0.56, 1.29, 1.53, 1.62),
        "tiny-imagenet": (0.88, 1.33, 1.32, 1.39),
    },
    "po-u": {
        "mnist": (0.02, 0.15, 1.38, 1.24),
        "cifar10": (0.33, 1.03, 1.44, 1.34),
        "tiny-imagenet": (0.44, 1.16, 1.28, 1.47),
    },
    "po-la": {
        "mnist": (0.01, 0.03, 0.50, 0.93),
        "cifar10": (0.28, 1.00, 1.47, 1.55),
        "tiny-imagenet": (0.41, 1.15, 1.41, 1.43),
    },
}

# model -> mean and sample standard deviation over ten runs on VQA v2: overall, yes/no, number, other
VQA: dict[str, tuple[tuple[float, float], ...]] = {
    "ban": ((65.96, 0.16), (83.34, 0.09), (49.24, 0.56), (57.17, 0.14)),
    "ban-lstm": ((66.06, 0.13), (83.29, 0.13), (49.64, 0.37), (57.30, 0.13)),
    "ban-po-u": ((66.33, 0.09), (83.50, 0.10), (50.42, 0.46), (57.48, 0.10)),
}
