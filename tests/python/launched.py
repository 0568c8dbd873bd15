"""Two ranks that train together, on the CPU, started in one of several ways.

usage: launched.py [env|spawn|forkserver|server] [STEPS]

env: a launcher has started this rank. spawn, forkserver: this process starts the ranks by
multiprocessing, and only torch.distributed knows of them. server: it starts an engine, which starts
them, as servers of language models do; none but them runs an operator.
"""
import multiprocessing
import os
import sys
import tempfile

RANKS = 2
HOW = sys.argv[1] if len(sys.argv) > 1 else 'env'
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 10


def train(**group):
    import torch

    torch.distributed.init_process_group('gloo', **group)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).square().mean().backward()
        for parameter in model.parameters():
            torch.distributed.all_reduce(parameter.grad)
        optimizer.step()
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads now and then abort an orderly end, also of an untraced program


def be_rank(rank, store):
    train(init_method='file://' + store, rank=rank, world_size=RANKS)


def start(method):
    context = multiprocessing.get_context(method)
    if method == 'forkserver':
        context.set_forkserver_preload(['torch'])
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=be_rank, args=(rank, os.path.join(folder, 'store')))
                 for rank in range(RANKS)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    if any(rank.exitcode for rank in ranks):
        sys.exit(1)


if __name__ == '__main__':
    if HOW == 'env':
        train()
    elif HOW == 'server':
        engine = multiprocessing.get_context('spawn').Process(target=start, args=('fork',))
        engine.start()
        engine.join()
        sys.exit(engine.exitcode)
    else:
        start(HOW)
