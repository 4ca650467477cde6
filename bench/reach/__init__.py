# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts what was published of attention over many GPUs, and what would be.

Attention is timed by burst-opt, whose clock runs the programs of all ranks; what
stands around it in a step is counted here, by formulas that name their source.
"""
