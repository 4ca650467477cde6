# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import contextlib
import enum

chosen = []


class SDPBackend(enum.Enum):
    FLASH_ATTENTION = 1
    CUDNN_ATTENTION = 3


@contextlib.contextmanager
def sdpa_kernel(backend):
    chosen.append(backend)
    yield
    chosen.pop()
