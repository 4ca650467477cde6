# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small Llama-like model, with the sequence split over ranks by burst.

    python examples/train.py                                    one process
    torchrun --nproc-per-node 4 examples/train.py --cp 4        the sequence over 4 ranks
    torchrun --nproc-per-node 4 examples/train.py --dp 2 --cp 2 and the batch over 2 of them
    python examples/train.py --plot docs/train.svg one.json four.json

The loss is the same for all of these. The text is English that comes with Python, as bytes. Each
sequence is packed with documents, and each document has its text twice: the second half can be
foretold by attention to the first one alone, which is mostly on other ranks.
"""

import argparse
import json
import math
import os
import pathlib
import resource
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import burst
from burst.drawing import Panel, curves, write

IGNORED = -100 # a label that is none


class Attention(nn.Module):
    def __init__(self, options, window):
        super().__init__()
        self.heads, self.key_heads = options.heads, options.key_heads
        self.dim = options.dim // options.heads
        self.window = window
        self.q = nn.Linear(options.dim, options.heads * self.dim, bias=False)
        self.k = nn.Linear(options.dim, options.key_heads * self.dim, bias=False)
        self.v = nn.Linear(options.dim, options.key_heads * self.dim, bias=False)
        self.o = nn.Linear(options.heads * self.dim, options.dim, bias=False)
        self.sinks = nn.Parameter(torch.zeros(options.heads)) if options.sinks else None

    def forward(self, x, place):
        q, k, v = (proj(x).unflatten(-1, (-1, self.dim)) for proj in (self.q, self.k, self.v))
        o = burst.attention(rotate(q, place.angles), rotate(k, place.angles), v,
                            mask=mask_of(place.ids, self.window), sinks=self.sinks,
                            sequence=place.sequence, layout="bshd", batch_offset=0)
        return self.o(o.flatten(-2))


def mask_of(ids, window):
    """Causal, within a document, and within a window if there is one. Positions and ids are
    those of the whole sequence, on every rank."""
    def mask(b, h, i, j):
        kept = (i >= j) & (ids[b, i] == ids[b, j])
        return kept & (i - j < window) if window else kept
    return mask


def rotate(x, angles):
    """Rotary position embedding of (batch, sequence, heads, dim)."""
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    def __init__(self, options, window):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(options.dim) for _ in range(2))
        self.attention = Attention(options, window)
        self.gate = nn.Linear(options.dim, 3 * options.dim, bias=False)
        self.up = nn.Linear(options.dim, 3 * options.dim, bias=False)
        self.down = nn.Linear(3 * options.dim, options.dim, bias=False)

    def forward(self, x, place):
        x = x + self.attention(self.norms[0](x), place)
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.embedding = nn.Embedding(256, options.dim)
        # With --window every second layer sees a window alone.
        self.blocks = nn.ModuleList(Block(options, options.window * (n % 2))
                                    for n in range(options.layers))
        self.norm = nn.RMSNorm(options.dim)
        self.head = nn.Linear(options.dim, 256, bias=False)

    def forward(self, tokens, place):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, place)
        return self.head(self.norm(x))


class Place:
    """What layers know of the sequence: this rank's positions, and the documents."""

    def __init__(self, options, sequence, ids):
        self.sequence, self.ids = sequence, ids
        dim = options.dim // options.heads
        frequencies = 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        self.angles = sequence.positions(options.length)[:, None] * frequencies


class Text:
    def __init__(self, options):
        from pydoc_data import topics
        text = torch.tensor(list("\n".join(topics.topics.values()).encode()))
        split = len(text) * 9 // 10
        self.parts = {"train": text[:split], "held out": text[split:]}
        self.options = options

    def batch(self, part, number):
        """Tokens, documents and labels (batch, length) of all ranks, which all of them make; and
        which labels are in the second half of a document."""
        generator = torch.Generator().manual_seed(number + self.options.seed)
        text = self.parts[part]
        rows = []
        for _ in range(self.options.batch):
            first = int(torch.randint(self.options.length // 4, self.options.length // 2, (),
                                      generator=generator)) // 2 * 2
            row = []
            for n, length in enumerate((first, self.options.length - first)):
                begin = int(torch.randint(0, len(text) - length, (), generator=generator))
                half = text[begin:begin + length // 2]
                label = torch.cat((half, half)).roll(-1)
                label[-1] = IGNORED # the next token is of another document
                row.append(torch.stack((torch.cat((half, half)), torch.full((length,), n), label,
                                        (torch.arange(length) >= length // 2).long())))
            rows.append(torch.cat(row, 1))
        tokens, ids, labels, is_second = torch.stack(rows, 1)
        return tokens, ids.int(), labels, is_second.bool()


class Trainer:
    def __init__(self, options):
        self.options = options
        self.mesh = init_device_mesh("cpu", (options.dp, options.cp), mesh_dim_names=("dp", "cp"))
        self.sequence = burst.Sequence(self.mesh["cp"], order=options.order,
                                       length=options.length)
        self.text = Text(options)
        torch.manual_seed(options.seed)
        self.model = Model(options)
        if options.dp > 1: # parameters are split over all ranks, and gradients averaged
            fully_shard(self.model, mesh=self.mesh["dp", "cp"]._flatten())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), options.rate,
                                           betas=(0.9, 0.95), foreach=False)

    def part(self, x):
        """What this rank has of (batch, length): its rows, and of these its shard."""
        return self.sequence.shard(x.chunk(self.options.dp)[self.mesh["dp"].get_local_rank()], 1)

    def losses(self, batch):
        """Of this rank's tokens, each, and their labels."""
        tokens, ids, labels, _ = batch
        own = ids.chunk(self.options.dp)[self.mesh["dp"].get_local_rank()].contiguous()
        logits = self.model(self.part(tokens), Place(self.options, self.sequence, own))
        return F.cross_entropy(logits.flatten(0, 1), self.part(labels).flatten(),
                               ignore_index=IGNORED, reduction="none")

    def step(self, number):
        """Loss and norm of the gradient of a step."""
        options = self.options
        for group in self.optimizer.param_groups: # 10 steps of warm-up
            group["lr"] = options.rate * min(1, (number + 1) / 10)
        batch = self.text.batch("train", number)
        # The mean is over the labels of all ranks, not of each.
        loss = self.losses(batch).sum() / (batch[2] != IGNORED).sum()
        self.optimizer.zero_grad()
        if options.dp > 1:
            (loss * options.dp * options.cp).backward()
        else:
            loss.backward()
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=False)
        self.optimizer.step()
        loss = loss.detach().clone()
        dist.all_reduce(loss)
        return loss.item(), float(getattr(norm, "full_tensor", lambda: norm)())

    @torch.no_grad()
    def perplexities(self):
        """Of held-out text: of all of it, of first halves and of second halves."""
        sums = torch.zeros(2, 2, dtype=torch.float64)
        for number in range(4):
            batch = self.text.batch("held out", 1000000 + number)
            losses = self.losses(batch).double()
            is_label = self.part(batch[2]).flatten() != IGNORED
            is_second = self.part(batch[3]).flatten()
            for half in range(2):
                kept = is_label & (is_second == bool(half))
                sums[half] += torch.stack((losses[kept].sum(), kept.sum().double()))
        dist.all_reduce(sums)
        total = sums.sum(0)
        return {"perplexity": math.exp(total[0] / total[1]),
                "perplexity_first": math.exp(sums[0, 0] / sums[0, 1]),
                "perplexity_second": math.exp(sums[1, 0] / sums[1, 1])}

    def plan(self):
        """What was chosen for a layer, and what it sends forward."""
        options = self.options
        ids = self.text.batch("train", 0)[1]
        size = options.dim // options.heads
        return burst.explain(
            (options.batch // options.dp, options.length, options.heads, size),
            (options.batch // options.dp, options.length, options.key_heads, size),
            mask=mask_of(ids.chunk(options.dp)[0].contiguous(), 0), sequence=self.sequence,
            dtype="float32", layout="bshd")


def train(options):
    if options.dp * options.cp != dist.get_world_size():
        raise SystemExit(f"--dp {options.dp} --cp {options.cp}: takes {options.dp * options.cp} "
                         f"processes, and there are {dist.get_world_size()}: use torchrun "
                         f"--nproc-per-node {options.dp * options.cp}")
    if options.batch % options.dp:
        raise SystemExit(f"--batch {options.batch}: must be a multiple of --dp {options.dp}")
    for name, value, unit in (("heads", options.heads, options.key_heads),
                              ("dim", options.dim, 2 * options.heads)):
        if value % unit:
            raise SystemExit(f"--{name} {value}: must be a multiple of {unit}")
    if options.length % 8 or options.length < 32:
        raise SystemExit(f"--length {options.length}: must be at least 32 and a multiple of 8")
    trainer = Trainer(options)
    is_first = dist.get_rank() == 0
    if is_first and options.cp > 1:
        plan = trainer.plan()
        chosen = next(line for line in plan.why.splitlines() if line.startswith(("*", ">")))
        print(f"{options.cp} ranks, {options.order}: {chosen.split()[1]}, "
              f"{plan.bytes_sent / 1024:.0f} KiB sent by a rank in a layer, forward")
    losses, norms = [], []
    begin = time.perf_counter()
    for number in range(options.steps):
        loss, norm = trainer.step(number)
        losses.append(loss)
        norms.append(norm)
        rate = (number + 1) * options.batch * options.length / (time.perf_counter() - begin)
        if is_first:
            progress(number + 1, options.steps, f"loss {loss:.4f}, {rate:.0f} tokens/s")
    found = {"losses": losses, "norms": norms, **trainer.perplexities(),
             "tokens_per_second": rate, "options": vars(options)}
    peak = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024])
    dist.all_reduce(peak, dist.ReduceOp.MAX)
    found["peak_mib"] = peak.item()
    if is_first:
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; held-out perplexity of first halves "
              f"{found['perplexity_first']:.3f}, of second halves "
              f"{found['perplexity_second']:.3f}; {rate:.0f} tokens/s, a process had at most "
              f"{found['peak_mib']:.0f} MiB")
        if options.json:
            write(options.json, json.dumps(found) + "\n")


def progress(done, of, text):
    """A bar on a terminal, else a line for each tenth."""
    if sys.stdout.isatty():
        bar = "#" * (30 * done // of)
        print(f"\r[{bar:30}] {done}/{of} {text}  ", end="\n" if done == of else "", flush=True)
    elif done * 10 // of != (done - 1) * 10 // of:
        print(f"step {done}/{of}: {text}", flush=True)


def plot(path, files):
    """Curves of the losses of several runs, as SVG."""
    runs = [(pathlib.Path(name).stem,
             list(enumerate(json.loads(pathlib.Path(name).read_text())["losses"])))
            for name in files]
    steps = max(len(losses) for _, losses in runs)
    write(path, curves([Panel(runs, f"steps, 0 to {steps}; loss per byte (nats)")]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cp", type=int, default=1, help="ranks over which a sequence is split")
    parser.add_argument("--dp", type=int, default=1, help="ranks over which the batch is split")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8, help="sequences of a step, on all ranks")
    parser.add_argument("--length", type=int, default=256, help="tokens of a sequence")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--key-heads", type=int, default=2)
    parser.add_argument("--sinks", action="store_true", help="a learned sink for each head")
    parser.add_argument("--window", type=int, default=0, help="of every second layer; 0: none")
    parser.add_argument("--order", default="zigzag", help="of positions over ranks")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="where to write losses and all else")
    parser.add_argument("--plot", nargs="+", metavar=("SVG", "JSON"),
                        help="draws the losses of runs, and trains nothing")
    options = parser.parse_args()
    if options.plot:
        if len(options.plot) < 2:
            parser.error("--plot: wants an SVG to write and JSON files to read")
        return plot(options.plot[0], options.plot[1:])
    if "RANK" in os.environ: # of torchrun
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        train(options)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
