# SPDX-License-Identifier: MIT
"""Trains a small GPT on one GPU with plain PyTorch: prints the median seconds of a step.

usage: train.py LAYERS HIDDEN HEADS SEQ MBS VOCAB

bf16 autocast over fp32 weights, fused attention, fused AdamW, no compiler: what the stack "ddp" of
trainyard describes. Random tokens: their values do not change the time.
"""
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HIDDEN, HEADS, SEQ, MBS, VOCAB = map(int, sys.argv[1:7])
WARM_UP, STEPS = 10, 30


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.proj = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        q, k, v = (
            part.view(MBS, SEQ, HEADS, HIDDEN // HEADS).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(HIDDEN, dim=2)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(MBS, SEQ, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(SEQ, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(SEQ, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


def main():
    torch.manual_seed(1)
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(VOCAB, (MBS, SEQ), device="cuda")
    targets = torch.randint(VOCAB, (MBS, SEQ), device="cuda")
    times = []
    for step in range(WARM_UP + STEPS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        torch.cuda.synchronize()
        if step >= WARM_UP:
            times.append(1e-3 * start.elapsed_time(end))
    print(f"{statistics.median(times):.6g}")


main()
