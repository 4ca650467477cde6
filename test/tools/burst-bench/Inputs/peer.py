# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A peer of burst-bench that takes no time: says what its argument asks for."""

import json
import os
import sys
import time

kind = sys.argv[1]
if kind == "early":
    sys.exit("no luck today")
print(json.dumps({"name": "stand-in 1.0"}), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    if kind == "fixed":
        assert question["kind"] in ("forward", "backward", "product"), question
        assert os.environ["OMP_PLACES"] == "{0}", os.environ["OMP_PLACES"]
        print(json.dumps({"seconds": 0.001}), flush=True)
    elif kind == "refuses":
        print(json.dumps({"error": "not of this type"}), flush=True)
    elif kind == "dies":
        sys.stderr.write("first\nout of luck\n")
        sys.exit(3)
    elif kind == "dies-once" and not os.path.exists(sys.argv[2]):
        open(sys.argv[2], "w").close()
        os.kill(os.getpid(), 9)
    elif kind == "dies-once":
        print(json.dumps({"seconds": 0.001}), flush=True)
    elif kind == "nonsense":
        print("what?", flush=True)
    elif kind == "negative":
        print(json.dumps({"seconds": -1}), flush=True)
    elif kind == "hangs":
        time.sleep(60)
