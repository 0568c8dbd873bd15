"""A Hugging Face Trainer on a tiny GPT-2: 4 batches accumulated for each of its steps.

usage: trainer.py [STEPS]
"""
import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        ids = torch.arange(index, index + 32) % 128
        return {'input_ids': ids, 'labels': ids}


with tempfile.TemporaryDirectory() as folder:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=32, n_embd=64, n_layer=2, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    trainer = Trainer(model, TrainingArguments(folder, max_steps=STEPS, per_device_train_batch_size=4,
                                               gradient_accumulation_steps=4, logging_steps=1000, report_to=[],
                                               save_strategy='no', disable_tqdm=True), train_dataset=Tokens())
    trainer.train()
    print('steps', trainer.state.global_step)
