"""Denoising with diffusers: a tiny UNet, a scheduler, one image. Every step of it is one.

usage: diffusion.py [STEPS] [pipeline|loop]
"""
import sys

import torch
from diffusers import DDIMScheduler, DDPMPipeline, UNet2DModel

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
device = 'cuda' if torch.cuda.is_available() else 'cpu'
unet = UNet2DModel(sample_size=16, block_out_channels=(32, 32), down_block_types=('DownBlock2D', 'AttnDownBlock2D'),
                   up_block_types=('AttnUpBlock2D', 'UpBlock2D'), layers_per_block=1, norm_num_groups=8).to(device)
scheduler = DDIMScheduler()
if sys.argv[2:] == ['loop']:
    scheduler.set_timesteps(STEPS)
    with torch.no_grad():
        sample = torch.randn(1, 3, 16, 16, device=device)
        for t in scheduler.timesteps:
            sample = scheduler.step(unet(sample, t).sample, t, sample).prev_sample
else:
    pipeline = DDPMPipeline(unet, scheduler).to(device)
    pipeline.set_progress_bar_config(disable=True)
    pipeline(num_inference_steps=STEPS)
print('steps', STEPS)
