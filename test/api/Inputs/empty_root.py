# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: empty_root.py ROOT FILE... -- ARGUMENT...

Puts files and the shared libraries that they need into a directory, and nothing
else; then runs the first one there, with that directory as the root."""

import os
import re
import shutil
import subprocess
import sys

root = sys.argv[1]
split = sys.argv.index("--")
files, arguments = sys.argv[2:split], sys.argv[split + 1:]

for file in files:
    shutil.copy(file, os.path.join(root, os.path.basename(file)))
    listing = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    if "not found" in listing:
        sys.exit(f"{file} needs what is not there:\n{listing}")
    for library in re.findall(r"(/\S+) \(0x", listing):
        place = root + library
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(library, place)

os.chroot(root)
os.chdir("/")
program = "/" + os.path.basename(files[0])
os.execve(program, [program] + arguments, {})
