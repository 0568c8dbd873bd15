"""Denoising without a framework for it: a small UNet that is told the time, trained to predict noise,
or images made with it step by step.

usage: denoise.py [STEPS] [train|sample|ranges]

train: one step of the optimizer a round. sample: one call of denoise() a step; ranges: the same
within NVTX ranges.
"""
import contextlib
import sys

import torch
from torch.nn.functional import interpolate, silu

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
MODE = sys.argv[2] if len(sys.argv) > 2 else 'train'
TIMES = 1000
device = 'cuda' if torch.cuda.is_available() else 'cpu'
signal = torch.cumprod(1 - torch.linspace(1e-4, 0.02, TIMES, device=device), 0)


class Block(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm = torch.nn.GroupNorm(1, inputs)
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = torch.nn.Linear(32, outputs)

    def forward(self, x, time):
        return self.conv(silu(self.norm(x))) + self.time(time)[:, :, None, None]


class UNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.begin = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.down, self.middle, self.up = Block(16, 32), Block(32, 32), Block(48, 16)
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
        self.end = torch.nn.Conv2d(16, 3, 3, padding=1)
        self.register_buffer('frequencies', torch.logspace(0, -4, 16))

    def forward(self, x, t):
        angles = t[:, None] * self.frequencies
        time = torch.cat([angles.sin(), angles.cos()], 1)
        first = self.begin(x)
        x = self.middle(self.down(torch.nn.functional.avg_pool2d(first, 2), time), time)
        tokens = x.flatten(2).transpose(1, 2)
        x = x + self.attention(tokens, tokens, tokens)[0].transpose(1, 2).view_as(x)
        return self.end(self.up(torch.cat([interpolate(x, scale_factor=2), first], 1), time))


def train(unet):
    optimizer = torch.optim.AdamW(unet.parameters())
    for _ in range(STEPS):
        images = torch.rand(4, 3, 16, 16, device=device)
        t = torch.randint(TIMES, (4,), device=device)
        noise = torch.randn_like(images)
        share = signal[t][:, None, None, None]
        loss = (unet(images * share.sqrt() + noise * (1 - share).sqrt(), t) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def denoise(unet, x, t, before):
    """From time t to the time before it."""
    noise = unet(x, torch.full((len(x),), t, device=device))
    image = (x - noise * (1 - signal[t]).sqrt()) / signal[t].sqrt()
    return image * signal[before].sqrt() + noise * (1 - signal[before]).sqrt()


@torch.no_grad()
def sample(unet):
    x = torch.randn(4, 3, 16, 16, device=device)
    times = torch.linspace(TIMES - 1, 0, STEPS + 1).long().tolist()
    for step, (t, before) in enumerate(zip(times, times[1:])):
        with torch.cuda.nvtx.range(f'denoise {step}') if MODE == 'ranges' else contextlib.nullcontext():
            x = denoise(unet, x, t, before)


unet = UNet().to(device)
train(unet) if MODE == 'train' else sample(unet)
print('steps', STEPS)
