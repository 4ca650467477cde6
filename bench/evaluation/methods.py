# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a model and its sequence are split over ranks: a class for each row of the tables."""

import contextlib
import dataclasses

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput,
                                               RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)

import burst
from evaluation.collectives import SummedScatter
from evaluation.model import Shape, build

IGNORED = -100 # a label that is none


@dataclasses.dataclass(frozen=True)
class Task:
    """What is computed, by whichever method."""

    shape: Shape
    batch: int
    length: int
    dtype: torch.dtype = torch.float32
    order: str = "zigzag"


def causal(b, h, i, j):
    return i >= j


def sdpa(q, k, v, **options):
    """PyTorch's attention, of (batch, sequence, heads, head dim)."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options).transpose(1, 2)


def full(x):
    return x.full_tensor() if isinstance(x, DTensor) else x


def local(x):
    return x.to_local() if isinstance(x, DTensor) else x


class Split:
    """The whole model on one process. Others say what they do differently."""

    name = "single"
    title = "one process"

    def __init__(self, task, mesh):
        self.task, self.mesh, self.group = task, mesh, mesh.get_group()
        self.positions = self.own_positions()
        self.model = build(task.shape, self.attend, task.dtype)
        self.prepare()

    @classmethod
    def why_not(cls, task, ranks):
        """What keeps it from this task, if something does."""
        return f"{cls.name}: one process is wanted, got {ranks}" if ranks > 1 else None

    @classmethod
    def why_no_step(cls, task, ranks):
        """What keeps it from a backward pass."""
        return cls.why_not(task, ranks)

    def own_positions(self):
        return torch.arange(self.task.length)

    def attend(self, q, k, v):
        return burst.attention(q, k, v, mask=causal, layout="bshd")

    def prepare(self):
        self.gradients = None

    def zero(self):
        """Gradients are parts of one tensor, which is summed over ranks at once."""
        if self.gradients is not None:
            self.gradients.zero_()
            return
        parameters = list(self.model.parameters())
        sizes = [p.numel() for p in parameters]
        self.gradients = torch.zeros(sum(sizes), dtype=self.task.dtype)
        for p, part in zip(parameters, self.gradients.split(sizes)):
            p.grad = part.view_as(p)

    def optimizer(self, rate):
        """AdamW of LLaMA-2, without weight decay."""
        return torch.optim.AdamW(self.parts(), rate, betas=(0.9, 0.95), weight_decay=0.0,
                                 fused=True)

    def parts(self):
        """What this rank has of the parameters, with their gradients where there are some."""
        return list(self.model.parameters())

    def shard(self, x):
        """This rank's part of (batch, sequence)."""
        return x[:, self.positions]

    def rotary_positions(self):
        return self.positions

    def logits(self, tokens):
        return self.model(self.shard(tokens), self.rotary_positions())

    def loss(self, tokens, labels):
        """This rank's part of the mean over the labels of all ranks."""
        return self.summed_loss(tokens, labels) / (labels != IGNORED).sum()

    def summed_loss(self, tokens, labels, reduction="sum"):
        return F.cross_entropy(self.logits(tokens).flatten(0, 1), self.shard(labels).flatten(),
                               ignore_index=IGNORED, reduction=reduction)

    def backward(self, tokens, labels):
        """Gradients of all ranks, added to those that there are; the loss."""
        loss = self.loss(tokens, labels)
        loss.backward()
        self.sum_gradients()
        return self.total(loss.detach())

    def sum_gradients(self):
        pass

    def total(self, x):
        """Of the parts of a loss that ranks have."""
        return x

    def total_of_positions(self, x):
        """Of sums over the positions of each rank."""
        return x

    def clip(self, most):
        """The norm of all gradients to be at most this."""
        self.gradients.mul_((most / self.gradients.norm()).clamp(max=1))

    @torch.no_grad()
    def first_token(self, tokens):
        """That follows the sequence. No logits are computed but those of the last position."""
        logits = self.model(self.shard(tokens), self.rotary_positions(), self.last)
        return full(logits)[:, 0].argmax(-1)

    def last(self, x):
        """Of (batch, sequence, dim) that of the last position, on all ranks."""
        return x[:, -1:]


#===----------------------------------------------------------------------===#
# The sequence is split
#===----------------------------------------------------------------------===#


class Context(Split):
    """By burst, in one of its strategies; all ranks have all weights."""

    strategy = "auto" # of both passes, or one of each
    without = () # optimisations that are left out
    nodes = 1 # over which ranks are spread, for strategies along two axes

    def __init__(self, task, mesh):
        self.sequence = burst.Sequence(mesh, task.order, nodes=self.nodes, length=task.length)
        super().__init__(task, mesh)

    @classmethod
    def why_not(cls, task, ranks, backward=False):
        """As the library says: it is asked for the plan."""
        try:
            cls.bytes_sent(task, ranks, backward)
        except (burst.Error, ValueError) as error:
            return f"{cls.name}: {error}"
        return None

    @classmethod
    def bytes_sent(cls, task, ranks, backward):
        """By all ranks in one attention, as its plan says."""
        sequence = burst.Sequence(ranks=ranks, order=task.order, nodes=cls.nodes)
        # Local tiling is no part of a plan.
        without = [name for name in cls.without if name != "local_tiling"]
        plan = burst.explain(*whole_shapes(task), sequence=sequence, dtype=task.dtype,
                             backward=backward, **cls.options() | {"without": without})
        return sum(rank["bytes_sent"] for rank in plan.ranks)

    @classmethod
    def options(cls):
        """Arguments of burst.attention and burst.explain."""
        return {"mask": causal, "layout": "bshd", "strategy": cls.strategy,
                "without": cls.without}

    @classmethod
    def why_no_step(cls, task, ranks):
        return cls.why_not(task, ranks) or cls.why_not(task, ranks, backward=True)

    def own_positions(self):
        return self.sequence.positions(self.task.length)

    def attend(self, q, k, v):
        return burst.attention(q, k, v, sequence=self.sequence, **self.options())

    def sum_gradients(self):
        dist.all_reduce(self.gradients, group=self.group)

    def total(self, x):
        dist.all_reduce(x, group=self.group)
        return x

    total_of_positions = total

    def last(self, x):
        owner = next(rank for rank in range(self.sequence.ranks) if self.task.length - 1 in
                     self.sequence.layout.positions(rank, self.task.length))
        row = x[:, -1:].contiguous() # a shard ends with its last position
        dist.broadcast(row, group=self.group, group_src=owner)
        return row


def whole_shapes(task):
    """Of q and k."""
    shape = task.shape
    return tuple((task.batch, task.length, heads, shape.head_dim)
                 for heads in (shape.heads, shape.key_heads))


class RingScores(Context):
    name, strategy = "ring_scores", "ring_scores"
    title = "RingAttention of Li et al., all scores stored"


class Ring(Context):
    name, strategy = "ring", "ring_kv"
    title = "a ring of keys and values, in both passes"


class DoubleRing(Context):
    name, strategy, nodes = "double_ring", "double_ring_kv", 2
    title = "rings within two nodes and between them"


class AllGather(Context):
    name, strategy = "all_gather", "all_gather"
    title = "all-gather of keys and values, by burst"


class Ulysses(Context):
    name, strategy = "ulysses", "ulysses"
    title = "heads in place of the sequence, by all-to-all"


class Usp(Context):
    name, strategy, nodes = "usp", "ulysses on [1], ring_kv on [0]", 2
    title = "Ulysses within two nodes, a ring between them"


class Auto(Context):
    name = "auto"
    title = "what burst chooses"


class Burst(Context):
    name, strategy = "burst", "ring_kv then ring_q"
    title = "BurstAttention: keys and values travel forward, queries backward"


class BurstWithoutOverlap(Burst):
    name, without = "burst_without_overlap", ("overlap",)
    title = "BurstAttention, transfers not overlapped"


class BurstWithoutDropping(Burst):
    name, without = "burst_without_dropping", ("dropping",)
    title = "BurstAttention, what the mask does not need is sent as well"


class BurstWithoutTiling(Burst):
    name, without = "burst_without_tiling", ("local_tiling",)
    title = "BurstAttention without local tiling (LAO)"


class Gathered(Context):
    """No run of burst: its layout alone says which positions a rank has."""

    name = "torch"
    title = "all-gather of keys and values, and attention, by PyTorch"

    @classmethod
    def why_not(cls, task, ranks, backward=False):
        return None

    def prepare(self):
        super().prepare()
        layout, length = self.sequence.layout, self.task.length
        held = [layout.positions(rank, length) for rank in range(layout.ranks)]
        self.most = max(map(len, held)) # shards are padded to it
        # Where each position of the whole sequence is among the shards of all.
        at = {position: rank * self.most + n
              for rank, of_rank in enumerate(held) for n, position in enumerate(of_rank)}
        self.places = torch.tensor([at[position] for position in range(length)])
        # Positions of this rank that follow each other.
        jumps = (self.positions.diff() != 1).nonzero().flatten() + 1
        self.chunks = [x for x in self.positions.tensor_split(jumps) if len(x)]

    def attend(self, q, k, v):
        k, v = (self.gather(x) for x in (k, v))
        parts = []
        # A chunk sees no keys behind its end: they are left out.
        for rows, chunk in zip(q.split([len(x) for x in self.chunks], 1), self.chunks):
            end = int(chunk[-1]) + 1
            mask = torch.arange(end) <= chunk[:, None]
            parts.append(sdpa(rows, k[:, :end], v[:, :end], attn_mask=mask))
        return torch.cat(parts, 1)

    def gather(self, x):
        """Of the whole sequence. The gradient is reduced and scattered."""
        x = F.pad(x.transpose(0, 1), (0, 0) * 3 + (0, self.most - x.shape[1])).contiguous()
        whole = functional.all_gather_single_autograd(x, 0, self.group)
        return whole.index_select(0, self.places).transpose(0, 1)


#===----------------------------------------------------------------------===#
# Weights are split
#===----------------------------------------------------------------------===#


class OfDTensors(Split):
    """Weights are DTensors; optimizers see what is here of them."""

    def prepare(self):
        self.own = []

    def parts(self):
        """Of DTensors what is here: optimizers are several times as fast on it."""
        if not self.own:
            self.own = [local(p.detach()) for p in self.model.parameters()]
        for own, p in zip(self.own, self.model.parameters()):
            if isinstance(p.grad, DTensor): # that of the embedding is whole on each rank
                own.grad = p.grad.redistribute(placements=p.placements).to_local()
            else:
                own.grad = p.grad
        return self.own

    def zero(self):
        self.model.zero_grad()

    def clip(self, most):
        squares = torch.zeros(2, dtype=torch.float64) # of what is split, of what all have
        for p, own in zip(self.model.parameters(), self.own):
            is_split = isinstance(p, DTensor) and p.placements[0].is_shard()
            squares[0 if is_split else 1] += own.grad.double().square().sum()
        dist.all_reduce(squares[:1], group=self.group)
        scale = (most / squares.sum().sqrt()).clamp(max=1)
        for own in self.own:
            own.grad.mul_(scale)


class TensorParallel(OfDTensors):
    """Heads, the hidden dimension and the vocabulary are split; all ranks have all positions of
    what norms and residuals see. Attention of a rank's heads is burst's, on one rank."""

    name = "tp_v1"
    title = "tensor parallelism, Megatron-LM V1"
    rows = Replicate() # of what norms and residuals see

    @classmethod
    def why_not(cls, task, ranks):
        for what, count in (("heads", task.shape.heads), ("heads of keys", task.shape.key_heads),
                            ("hidden units", task.shape.hidden), ("tokens of the vocabulary",
                                                                  task.shape.vocab)):
            if count % ranks:
                return f"{cls.name}: {count} {what} are no multiple of {ranks} ranks"
        return None

    def prepare(self):
        # One input of q, k and v, and of gate and up: its gradient is reduced once.
        def inputs(*others):
            return PrepareModuleInput(input_layouts=(self.rows, *others),
                                      desired_input_layouts=(Replicate(), *others))
        plan = {
            "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=self.rows),
            "head": ColwiseParallel(input_layouts=self.rows, output_layouts=Shard(-1),
                                    use_local_output=False)}
        for n in range(self.task.shape.layers):
            layer = f"layers.{n}"
            plan |= {f"{layer}.attention": inputs(None), f"{layer}.mlp": inputs()}
            plan |= {f"{layer}.{name}": ColwiseParallel()
                     for name in ("attention.q", "attention.k", "attention.v", "mlp.gate",
                                  "mlp.up")}
            plan |= {f"{layer}.{name}": RowwiseParallel(output_layouts=self.rows)
                     for name in ("attention.o", "mlp.down")}
        parallelize_module(self.model, self.mesh, plan | self.norms())
        super().prepare()

    def norms(self):
        return {}

    def backward(self, tokens, labels):
        with loss_parallel():
            loss = self.loss(tokens, labels)
            loss.backward()
        self.sum_gradients()
        self.parts()
        return full(loss.detach())


class SequenceTensorParallel(TensorParallel):
    """Norms and residuals see a contiguous part of the sequence."""

    name = "tp_v3"
    title = "tensor and sequence parallelism, Megatron-LM V3"
    rows = Shard(1)

    @classmethod
    def why_not(cls, task, ranks):
        if task.length % ranks: # gloo would abort the process
            return f"{cls.name}: the length {task.length} is no multiple of {ranks} ranks"
        return super().why_not(task, ranks)

    def norms(self):
        names = ["norm"] + [f"layers.{n}.{norm}" for n in range(self.task.shape.layers)
                            for norm in ("attention_norm", "mlp_norm")]
        return dict.fromkeys(names, SequenceParallel())

    def sum_gradients(self):
        """Of the weights of norms, each by a rank's part of the sequence, in one all-reduce."""
        norms = [p for p in self.model.parameters() if p.grad.placements[0].is_partial()]
        summed = torch.cat([p.grad.to_local() for p in norms])
        dist.all_reduce(summed, group=self.group)
        for p, part in zip(norms, summed.chunk(len(norms))):
            p.grad = DTensor.from_local(part.clone(), self.mesh, [Replicate()], run_check=False)

    def last(self, x):
        row = x.to_local()[:, -1:].contiguous()
        dist.broadcast(row, group=self.group, group_src=self.mesh.size() - 1)
        return DTensor.from_local(row, self.mesh, [Replicate()], run_check=False)


#===----------------------------------------------------------------------===#
# The sequence is split, and so are weights
#===----------------------------------------------------------------------===#


class BurstFsdp(OfDTensors, Burst):
    """Weights, gradients and states are sharded over the ranks that split the sequence. A layer is
    whole while it is computed, in either pass; what is outside of layers from its first use to the
    end of the step, as fully_shard has it for a root."""

    name = "burst_fsdp2"
    title = "BurstAttention, weights sharded by FSDP2 (ZeRO-3)"
    divisor = 1.0 # of the sum of gradients: a loss is over the labels of all ranks

    def prepare(self):
        super().prepare()
        for module in (*self.model.layers, self.model):
            fully_shard(module, mesh=self.mesh)
            module.set_gradient_divide_factor(self.divisor)
            module.set_force_sum_reduction_for_comms(True) # gloo has no PREMUL_SUM
            module.set_custom_reduce_scatter(SummedScatter())

    def logits(self, tokens):
        found = super().logits(tokens)
        if not torch.is_grad_enabled():
            self.model.reshard() # else a backward pass does: the root would stay whole until one
        return found

    @torch.no_grad()
    def first_token(self, tokens):
        found = super().first_token(tokens)
        self.model.reshard()
        return found

    def backward(self, tokens, labels):
        loss = super().backward(tokens, labels)
        self.parts()
        return loss

    def sum_gradients(self):
        pass # they were reduced and scattered


METHODS = {method.name: method for method in (
    Split, TensorParallel, SequenceTensorParallel, RingScores, Ring, DoubleRing, AllGather, Ulysses,
    Usp, Burst, BurstFsdp, BurstWithoutOverlap, BurstWithoutDropping, BurstWithoutTiling, Auto,
    Gathered)}
