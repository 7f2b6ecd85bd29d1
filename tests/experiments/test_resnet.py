import pytest
import torch
from torch.nn.functional import batch_norm, conv2d, linear, max_pool2d

from unshuffle.experiments.resnet import ResNet18, frozen

NORM = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


def torchvisions_names():
    """By the rule of its ResNet with basic blocks, two in each of four stages."""
    names = ["conv1.weight", *(f"bn1.{part}" for part in NORM)]
    for stage in (1, 2, 3, 4):
        for block in (0, 1):
            for number in (1, 2):
                here = f"layer{stage}.{block}"
                names += [f"{here}.conv{number}.weight", *(f"{here}.bn{number}.{part}" for part in NORM)]
            if stage > 1 and block == 0:
                names += [f"{here}.downsample.0.weight", *(f"{here}.downsample.1.{part}" for part in NORM)]
    return [*names, "fc.weight", "fc.bias"]


def test_parameters_and_names_are_torchvisions():
    model = ResNet18()
    assert sum(parameter.numel() for parameter in model.parameters()) == 11_689_512
    assert list(model.state_dict()) == torchvisions_names()
    assert len(model.state_dict()) == 122
    assert model.conv1.weight.shape == (64, 3, 7, 7)
    assert model.layer3[0].downsample[0].weight.shape == (256, 128, 1, 1)
    assert model.fc.weight.shape == (1000, 512)


@pytest.mark.parametrize(("small", "inside"), [(False, [16, 8, 4, 2]), (True, [32, 16, 8, 4])])
def test_shapes(small, inside):
    """The image's side is halved by the stem's stride (7×7 only), by the pooling, and by every stage but the first."""
    model, seen = ResNet18(7, channels=1, small_images=small).eval(), []
    for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
        layer.register_forward_hook(lambda module, inputs, output: seen.append(tuple(output.shape)))
    assert model(torch.zeros(2, 1, 64, 64)).shape == (2, 7)
    assert seen == [(2, width, side, side) for width, side in zip((64, 128, 256, 512), inside, strict=True)]
    assert list(model.state_dict()) == torchvisions_names()


def test_standard_initialisation():
    model = ResNet18(10)
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] ** 2
            assert module.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.05), name
        if isinstance(module, torch.nn.BatchNorm2d):
            assert (module.weight == 1).all()
            assert (module.bias == 0).all()


def functional(weights, x, stride):
    """The architecture written out, from nothing but a state dict."""

    def norm(x, name):
        mean, var, weight, bias = (weights[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias"))
        return batch_norm(x, mean, var, weight, bias)

    kernel = weights["conv1.weight"]
    x = norm(conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2), "bn1").relu()
    x = max_pool2d(x, 3, 2, 1)
    for stage in (1, 2, 3, 4):
        for block in (0, 1):
            here, step = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = norm(conv2d(x, weights[f"{here}.conv1.weight"], stride=step, padding=1), f"{here}.bn1").relu()
            y = norm(conv2d(y, weights[f"{here}.conv2.weight"], padding=1), f"{here}.bn2")
            if step == 2:
                x = norm(conv2d(x, weights[f"{here}.downsample.0.weight"], stride=2), f"{here}.downsample.1")
            x = (x + y).relu()
    return linear(x.mean((2, 3)), weights["fc.weight"], weights["fc.bias"])


@pytest.mark.parametrize("small", [False, True])
def test_equals_the_architecture_written_out(small):
    model = ResNet18(5, small_images=small).double()
    model(torch.rand(4, 3, 32, 32, dtype=torch.float64))  # statistics other than the first
    x = torch.rand(2, 3, 33, 33, dtype=torch.float64)
    torch.testing.assert_close(model.eval()(x), functional(model.state_dict(), x, 1 if small else 2))


def test_frozen_gives_the_same_logits_and_the_same_gradient_of_its_input():
    model = ResNet18(5, channels=1, small_images=True).double()
    with torch.no_grad():
        for parameter in model.parameters():  # batch norms that are not the identity
            parameter.add_(0.05 * torch.rand_like(parameter))
    model(torch.rand(4, 1, 16, 16, dtype=torch.float64))
    model.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    still, x = frozen(model), torch.rand(2, 1, 16, 16, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(still(x), model(x))
    gradients = [torch.autograd.grad(network(x).square().sum(), x)[0] for network in (still, model)]
    torch.testing.assert_close(*gradients)
    assert not any(parameter.requires_grad for parameter in still.parameters())
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in still.modules())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
