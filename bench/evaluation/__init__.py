# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The evaluation of BurstAttention (arXiv 2403.09347), over whole models on CPU ranks."""
