"""ResNet-18 (He et al., 2015), with torchvision's names, so that published weights load.

A stem, and four stages of two residual blocks with 64, 128, 256 and 512 channels; every stage but the first halves the
image. A block is

    y = relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x))

where the shortcut is x itself, or a strided 1×1 convolution with batch norm where the shape changes.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

if TYPE_CHECKING:
    from jaxtyping import Float

WIDTHS = (64, 128, 256, 512)


def convolution(channels_in: int, channels: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Without a bias, which the batch norm behind it has."""
    return nn.Conv2d(channels_in, channels, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    """Two 3×3 convolutions and the shortcut around them."""

    def __init__(self, channels_in: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = convolution(channels_in, channels, 3, stride)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = convolution(channels, channels, 3)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(convolution(channels_in, channels, 1, stride), nn.BatchNorm2d(channels))

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch c2 h2 w2"]:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + shortcut)


class ResNet18(nn.Module):
    """An image to the logits of its classes.

    Args:
        classes: that it tells apart.
        channels: of an image, 3 for colour.
        small_images: a first convolution of 3×3 without stride, as the paper has it for MNIST and CIFAR-10, in the
            place of the 7×7 one with stride 2. The max pooling behind it stays.

    >>> import torch
    >>> ResNet18(10, channels=1, small_images=True)(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(self, classes: int = 1000, *, channels: int = 3, small_images: bool = False) -> None:
        super().__init__()
        kernel, stride = (3, 1) if small_images else (7, 2)
        self.conv1 = convolution(channels, WIDTHS[0], kernel, stride)
        self.bn1 = nn.BatchNorm2d(WIDTHS[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1, self.layer2, self.layer3, self.layer4 = (
            nn.Sequential(Block(before, width, 1 if width == WIDTHS[0] else 2), Block(width, width))
            for before, width in zip((WIDTHS[0], *WIDTHS), WIDTHS, strict=False)
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(WIDTHS[-1], classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch classes"]:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def frozen(network: ResNet18) -> ResNet18:
    """A copy for evaluation alone, which gives the same logits: nothing of it takes gradients or changes.

    With its statistics fixed, a batch norm is a factor and a constant for each channel, which go into the convolution
    before it; that saves an eighth of the forward pass and the gradient of the input.
    """
    made: Any = copy.deepcopy(network).eval()
    blocks: list[Any] = [module for module in made.modules() if isinstance(module, Block)]
    for holder in (made, *blocks):
        holder.conv1, holder.bn1 = fuse_conv_bn_eval(holder.conv1, holder.bn1), nn.Identity()
    for block in blocks:
        block.conv2, block.bn2 = fuse_conv_bn_eval(block.conv2, block.bn2), nn.Identity()
        if block.downsample is not None:
            block.downsample = nn.Sequential(fuse_conv_bn_eval(*block.downsample))
    return made.requires_grad_(False).to(memory_format=torch.channels_last)
