# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two objects of burst-run --json say the same but for how long it took."""

import json
import sys

one, two = (json.load(open(path)) for path in sys.argv[1:])
one.pop("seconds"), two.pop("seconds")
assert one == two, (one, two)
