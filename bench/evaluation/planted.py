# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes that are made in splitting a sequence, as methods: `check` must find each."""

import torch
import torch.distributed as dist

import burst
from evaluation.methods import BurstFsdp, Ring, causal


class DroppedHop(Ring):
    name, title = "dropped_hop", "rank 1 sees its own keys only"

    def attend(self, q, k, v):
        length, layout = self.task.length, self.sequence.layout
        held = torch.zeros(length, dtype=torch.bool)
        held[layout.positions(1, length)] = True
        options = self.options() | {
            "mask": lambda b, h, i, j: causal(b, h, i, j) & (~held[i] | held[j])}
        return burst.attention(q, k, v, sequence=self.sequence, **options)


class NotSummed(Ring):
    name, title = "not_summed", "gradients are not summed over the ranks"

    def sum_gradients(self):
        pass


class LocalPositions(Ring):
    name, title = "local_positions", "rotary embeddings count from 0 on each rank"

    def rotary_positions(self):
        return torch.arange(len(self.positions))


class LocalLabels(Ring):
    name, title = "local_labels", "labels are shifted within each shard"

    def summed_loss(self, tokens, labels, reduction="sum"):
        # `labels` are tokens that were rolled: rolled back, sharded, rolled again.
        own = super().shard(labels.roll(1, 1)).roll(-1, 1)
        whole = labels.clone()
        whole[:, self.positions] = own
        return super().summed_loss(tokens, whole, reduction)


class MeanPerRank(Ring):
    name, title = "mean_per_rank", "a mean over the labels of each rank, and then over ranks"

    def loss(self, tokens, labels):
        return self.summed_loss(tokens, labels, "mean") / dist.get_world_size(self.group)


class Averaged(BurstFsdp):
    """What fully_shard does unless it is told."""

    name, title = "averaged", "gradients of shards of weights are averaged over the ranks"

    def prepare(self):
        self.divisor = float(self.mesh.size())
        super().prepare()


PLANTED = {method.name: method for method in (
    DroppedHop, NotSummed, LocalPositions, LocalLabels, MeanPerRank, Averaged)}
