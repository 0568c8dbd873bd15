"""DistributedDataParallel over the GPUs of one host; the optimizer marks the steps.

usage: torchrun --nproc-per-node 2 ddp.py [STEPS]
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gpt


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rank = int(os.environ['LOCAL_RANK'])
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', device_id=torch.device('cuda', rank))
    model = DistributedDataParallel(gpt.GPT(layers=4).cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, 1024, (8, 129), device='cuda')
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        gpt.loss_of(model, data).backward()
        optimizer.step()
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()
    gradients = sum(p.numel() * p.element_size() for p in model.parameters())
    print('rank %d done, %d bytes of gradients' % (rank, gradients))


if __name__ == '__main__':
    main()
