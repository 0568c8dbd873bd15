"""Lightning: batches accumulated by 3, or two optimizers stepped by hand in each batch.

usage: fit.py [STEPS] [accumulate|manual]
"""
import sys
import tempfile

import torch

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
MANUAL = sys.argv[2:] == ['manual']


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = not MANUAL
        self.one, self.two = torch.nn.Linear(16, 16), torch.nn.Linear(16, 1)

    def training_step(self, batch, index):
        loss = self.two(self.one(batch[0]).relu()).square().mean()
        if MANUAL:
            optimizers = self.optimizers()
            for optimizer in optimizers:
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in optimizers:
                optimizer.step()
        return loss

    def configure_optimizers(self):
        if MANUAL:
            return [torch.optim.SGD(layer.parameters(), 0.01) for layer in (self.one, self.two)]
        return torch.optim.AdamW(self.parameters())


loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(1024, 16)), batch_size=4)
with tempfile.TemporaryDirectory() as folder:
    trainer = pl.Trainer(max_steps=STEPS * (1 + MANUAL), accumulate_grad_batches=1 if MANUAL else 3, devices=1,
                         logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, default_root_dir=folder)
    trainer.fit(Model(), loader)
print('steps', trainer.global_step // (1 + MANUAL))
