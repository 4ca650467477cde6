# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the libraries of CUDA are: those of the system, or what PyTorch brought as wheels."""

import ctypes
import glob
import importlib.util
import os

# Of each: the variable by which burst takes another one, names that the system may know, and
# where wheels for CUDA 13 and 12 have it.
LIBRARIES = {
    "cuda": ("BURST_CUDA_DRIVER_LIBRARY", ["libcuda.so.1"], []),
    "nvrtc": ("BURST_NVRTC_LIBRARY", ["libnvrtc.so.13", "libnvrtc.so.12"],
              ["cu13/lib/libnvrtc.so.*", "cuda_nvrtc/lib/libnvrtc.so.*"]),
    "nccl": ("BURST_NCCL_LIBRARY", ["libnccl.so.2"], ["nccl/lib/libnccl.so.*"]),
}


def wheels(patterns):
    """Files of wheels of NVIDIA, which share a folder `nvidia`, in all places of packages."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or []) if spec else []
    # What scripts/setup brings.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders.append(os.path.join(cache, "burst", "cuda", "nvidia"))
    return [path for pattern in patterns for folder in folders
            for path in sorted(glob.glob(os.path.join(folder, pattern)))
            if ".alt." not in path]


def find(what):
    """A name that dlopen takes, or None."""
    variable, names, patterns = LIBRARIES[what]
    homes = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    given = os.environ.get(variable)
    system = names + [os.path.join(home, "lib64", name) for home in homes if home
                      for name in names]
    # What PyTorch brought comes first: two versions of one library in a process do harm.
    for name in [given] if given else wheels(patterns) + system:
        try:
            ctypes.CDLL(name)
            return name
        except OSError:
            pass
    return None


def name_for_burst():
    """Sets the variables that burst asks, where they are not set and the library is a
    wheel's, which burst does not look for."""
    for what, (variable, _, _) in LIBRARIES.items():
        if not os.environ.get(variable):
            found = find(what)
            if found and os.path.isabs(found):
                os.environ[variable] = found
