"""A launch-bound bf16 GPT training loop that knows nothing of gtrace.

usage: gpt.py [--steps N] [--mode eager|compile|graph] [--layers N] [--times FILE]

--times writes the wall time of each step in milliseconds, one a line; the device is then
synchronised after every step. graph captures the forward and backward pass before the loop and
replays it; graph-mid captures a second graph in the middle of the loop, too.
"""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (t.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
                   for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, dim))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, layers=12, dim=256, heads=8, vocab=1024, length=128):
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))


def loss_of(model, data):
    with torch.autocast('cuda', dtype=torch.bfloat16):
        out = model(data[:, :-1])
        return F.cross_entropy(out.flatten(0, 1).float(), data[:, 1:].flatten())


def capture(model, data):
    """A graph of one forward and backward pass into static gradients."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model.zero_grad(set_to_none=True)
            loss_of(model, data).backward()
    torch.cuda.current_stream().wait_stream(stream)
    model.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss_of(model, data).backward()
    return graph


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--mode', default='eager', choices=('eager', 'compile', 'graph', 'graph-mid'))
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--times')
    args = parser.parse_args()
    torch.manual_seed(0)
    model = GPT(args.layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, 1024, (8, 129), device='cuda')
    forward = torch.compile(model) if args.mode == 'compile' else model
    graph = capture(model, data) if args.mode.startswith('graph') else None
    times = []
    for step in range(args.steps):
        begin = time.perf_counter()
        if args.mode == 'graph-mid' and step and step % 3 == 0:
            graph = capture(model, data)
        if graph:
            graph.replay()
        else:
            optimizer.zero_grad(set_to_none=True)
            loss_of(forward, data).backward()
        optimizer.step()
        if args.times:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    torch.cuda.synchronize()
    if args.times:
        with open(args.times, 'w') as out:
            out.writelines('%.4f\n' % t for t in times)


if __name__ == '__main__':
    main()
