"""A loop of one's own with accelerate: 4 batches accumulated for each step of the optimizer.

usage: accelerated.py [STEPS]
"""
import sys

import torch
from accelerate import Accelerator

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
accelerator = Accelerator(gradient_accumulation_steps=4)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
data = torch.utils.data.TensorDataset(torch.randn(STEPS * 16, 16))
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=4))
steps = 0
for batch, in loader:
    with accelerator.accumulate(model):
        loss = model(batch).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    steps += accelerator.sync_gradients
print('steps', steps)
