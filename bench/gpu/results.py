# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was found, in one file: a tar that is written anew, whole, whenever something is added."""

import io
import json
import os
import tarfile

# What a machine may give back of a file, less what a tar adds.
LARGEST = 15 << 20
REPORT = "gpu.json"


def read(path):
    """Files of an archive by name; none where there is no archive."""
    if not path or not os.path.exists(path):
        return {}
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read()
                for member in archive if member.isfile()}


class Results:
    """Files by name, at `path`. `carried` are archives of calls before, the newest last: their
    files stay, and their cells that passed or hung are those of this report."""

    def __init__(self, path, carried):
        self.path, self.files = path, {}
        for archive in carried:
            self.files.update(read(archive))
        before = json.loads(self.files.pop(REPORT, b"{}"))
        self.cells = before.get("cells", {})

    def add(self, name, content):
        self.files[name] = content

    def collect(self, folder):
        """Takes what a process left in a folder: smaller files first, so that a large one costs
        no other."""
        found = [os.path.join(place, name) for place, _, names in os.walk(folder)
                 for name in names if not name.endswith(".tmp")]
        for path in sorted(found, key=os.path.getsize):
            with open(path, "rb") as file:
                self.add(os.path.relpath(path, folder), file.read())

    def write(self, report, table):
        """The report and its table come first; what no longer fits is left out, and named."""
        first = {"gpu.md": (table + "\n").encode()}
        left_out, size = [], 1 << 20
        for name, content in self.files.items():
            if name in first:
                continue
            size += len(content) + 1024
            if size > LARGEST:
                left_out.append(name)
                size -= len(content) + 1024
        report = {**report, **({"left_out": left_out} if left_out else {})}
        files = {REPORT: (json.dumps(report, indent=1) + "\n").encode(), **first,
                 **{name: content for name, content in self.files.items()
                    if name not in left_out and name not in first}}
        temporary = self.path + ".tmp"
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        with tarfile.open(temporary, "w") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        os.replace(temporary, self.path)
